// SPDX-License-Identifier: Apache-2.0
#include "simulate/spot_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "edl/core/error.hpp"

namespace edl::simulate {
namespace {

double carry(spot_zone const& from, spot_zone const& to, spot_rules const& by, double gigabytes) {
  double const gbit = from.region == to.region         ? by.same_region
                      : from.continent == to.continent ? by.same_continent
                                                       : by.else_;
  return gbit > 0 ? gigabytes * 8 / gbit : 0;
}

}  // namespace

spot_job::spot_job(spot_trace const& trace, spot_case const& what, spot_rules const& by)
    : trace_(trace), case_(what), rules_(by) {}

double spot_job::carry_seconds(int from, int to) const {
  return carry(zone(from == none ? to : from), zone(to), rules_, case_.gigabytes);
}
double spot_job::carry_usd(int from, int to) const {
  return from == none || zone(from).region == zone(to).region ? 0 : rules_.egress * case_.gigabytes;
}

double spot_job::whole(double seconds) const { return std::ceil(seconds / tick()) * tick(); }
double spot_job::time_left() const { return std::floor((deadline() - elapsed()) / tick()) * tick(); }

void spot_job::start(int z, bool on_demand) {
  if (running_ == z && on_demand_ == on_demand) return;
  running_ = z;
  on_demand_ = on_demand;
  started_ = true;
  from_ = last_;
}
bool spot_job::try_spot(int z) {
  if (!zone(z).up[at()]) return false;
  start(z, false);
  return true;
}
void spot_job::go_on_demand(int z) { start(z, true); }
bool spot_job::probe(int z) {
  if (!zone(z).up[at()]) return false;
  probes_ += price(z) * rules_.probe / hour;
  return true;
}

// Of the tick before now.
void spot_job::pay_and_progress() {
  std::size_t const before = at() - 1;
  double paid = probes_, used = 1;
  probes_ = 0;
  double step = 0;
  if (running_ != none) {
    spot_zone const& z = zone(running_);
    if (started_) {
      standing_ = rules_.standstill + carry_seconds(from_, running_);
      if (from_ != none && from_ != running_) ++result_.moves, paid += carry_usd(from_, running_);
      started_ = false;
    }
    step = std::max(tick() - standing_, 0.0);
    if (step >= left()) used = (standing_ + left()) / tick(), step = left();
    standing_ = std::max(standing_ - tick(), 0.0);
    double const price = (on_demand_ ? z.on_demand : z.price[before]) * tick() / hour;
    if (step >= left() - 1e-3) {
      result_.cost += price * used;
      result_.last_tick = price;
    } else {
      paid += price;
    }
    if (on_demand_) result_.on_demand += used * tick() / hour;
    last_ = running_;
    if (!on_demand_ && (now_ >= case_.ticks || !z.up[at()])) running_ = none;
  }
  done_ += step;
  progress_.push_back(step);
  result_.cost += paid;
  if (left() > 1e-3) result_.published += paid;
}

bool spot_job::caught() {
  if (!caught_ && whole(left() + rules_.standstill) < time_left()) return false;
  caught_ = true;
  if (running_ != none) {
    go_on_demand(running_);
    return true;
  }
  int best = 0;
  auto const cost = [&](int z) { return zone(z).on_demand * left() / hour + carry_usd(last_, z); };
  for (int z = 1; z < zones(); ++z)
    if (cost(z) < cost(best)) best = z;
  go_on_demand(best);
  return true;
}

spot_result spot_job::run(strategy& by) {
  for (;; ++now_) {
    if (now_ > 0) pay_and_progress();
    if (left() <= 1e-3) return result_;
    if (now_ >= case_.ticks) {
      result_.missed = true;
      return result_;
    }
    if (!by.net() || !caught()) by.decide(*this);
  }
}

double spot_optimum(spot_trace const& trace, spot_case const& what, spot_rules const& by, int parts) {
  constexpr double never = std::numeric_limits<double>::infinity();
  int const zones = int(what.zones.size()), ticks = what.ticks;
  double const part = trace.tick / parts, paid = trace.tick / hour;
  int const work = int(std::floor(what.work / part + 1e-6));
  std::size_t const row = std::size_t(work) + 1;
  auto const zone = [&](int z) -> spot_zone const& { return trace.zones[what.zones[std::size_t(z)]]; };
  // A start in zone `to` from `from`: its standstill in parts, its ticks until the first step.
  auto const standstill = [&](int from, int to) {
    double const s = by.standstill + carry(zone(from == zones ? to : from), zone(to), by, what.gigabytes);
    return int(
        std::floor(std::min(s / part, double(parts) * (ticks + 1)) + 1e-6));  // more ends after the window
  };
  int most = 0;
  for (int f = 0; f <= zones; ++f)
    for (int t = 0; t < zones; ++t) most = std::max(most, std::min(ticks, standstill(f, t) / parts + 1));
  std::size_t const layers = std::size_t(most) + 1;
  constexpr double most_numbers = 5e8;  // of 8 bytes
  if (double(layers) * double(2 * zones) * double(row) > most_numbers)
    throw usage_error(
        fmt::format("{}: the optimum of {} zones, {:.0f} hours of work and moves of {} ticks needs more "
                    "than 4 GB: give fewer zones, less work, or shorter moves (--restart, --links)",
                    what.name, zones, what.work / hour, most));
  // Least cost from a tick on: machines that compute (spot of each zone, then on demand), by remaining work.
  std::vector<std::vector<std::vector<double>>> runs(
      layers, std::vector<std::vector<double>>(std::size_t(2 * zones), std::vector<double>(row, never)));
  // ... and no machine, the state in a zone, or (the last) in none yet.
  std::vector<std::vector<double>> idle(std::size_t(zones) + 1, std::vector<double>(row, never));
  for (auto& r : runs[std::size_t(ticks) % layers]) r[0] = 0;
  for (auto& i : idle) i[0] = 0;
  auto const price = [&](int pool, int t) {
    spot_zone const& z = zone(pool % zones);
    return paid * (pool < zones ? z.price[what.start + std::size_t(t)] : z.on_demand);
  };
  auto const there = [&](int pool, int t) {
    return pool >= zones || zone(pool).up[what.start + std::size_t(t)] != 0;
  };
  std::vector<std::vector<double>> starts = idle;
  for (int t = ticks - 1; t >= 0; --t) {
    for (int from = 0; from <= zones; ++from) {
      std::vector<double>& best = starts[std::size_t(from)];
      best = idle[std::size_t(from)];
      for (int pool = 0; pool < 2 * zones; ++pool) {
        int const to = pool % zones, still = standstill(from, to), first = still / parts + 1;
        if (t + first > ticks) continue;
        double cost = from == zones || zone(from).region == zone(to).region ? 0 : by.egress * what.gigabytes;
        bool possible = true;
        for (int k = 0; k < first && possible; ++k) {
          possible = there(pool, t + k);
          if (possible && k + 1 < first) cost += price(pool, t + k);
        }
        if (!possible) continue;
        int const gain = first * parts - still;
        double const last = price(pool, t + first - 1);
        std::vector<double> const& then = runs[std::size_t(t + first) % layers][std::size_t(pool)];
        // It ends within that tick, or goes on.
        for (int w = 1; w <= std::min(gain, work); ++w)
          best[std::size_t(w)] =
              std::min(best[std::size_t(w)], cost + last * double(parts - gain + w) / parts);
        double const all = cost + last;
        for (int w = gain + 1; w <= work; ++w)
          best[std::size_t(w)] = std::min(best[std::size_t(w)], all + then[std::size_t(w - gain)]);
      }
    }
    auto& now = runs[std::size_t(t) % layers];
    auto const& next = runs[std::size_t(t + 1) % layers];
    for (int pool = 0; pool < 2 * zones; ++pool) {
      std::vector<double>& best = now[std::size_t(pool)];
      best = starts[std::size_t(pool % zones)];
      if (!there(pool, t)) continue;
      double const cost = price(pool, t);
      for (int w = 1; w <= std::min(parts, work); ++w)
        best[std::size_t(w)] = std::min(best[std::size_t(w)], cost * w / parts);
      for (int w = parts + 1; w <= work; ++w)
        best[std::size_t(w)] =
            std::min(best[std::size_t(w)], cost + next[std::size_t(pool)][std::size_t(w - parts)]);
    }
    std::swap(idle, starts);
  }
  return idle[std::size_t(zones)][std::size_t(work)];
}

}  // namespace edl::simulate
