// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "edl/cluster/autoscaler/spot.hpp"
#include "edl/core/inline.hpp"

namespace edl::autoscaler {
namespace detail {

/// A pool's losses and returns per hour.
struct spot_rates {
  double loss, back;

  explicit spot_rates(spot_sightings const& s)
      : loss((s.losses + 1) / (s.up_hours + 8)), back((s.returns + 1) / (s.down_hours + 3)) {}

  double usual() const { return back / (loss + back); }  ///< part of the time that it is up
  /// The probability that it is up some hours after it was, or was not.
  double up_after(bool was, double hours) const {
    return usual() + ((was ? 1 : 0) - usual()) * std::exp(-(loss + back) * hours);
  }
};

/// A pool, or on demand, as the outlook sees it.
struct spot_level {
  double step_usd;    ///< of a step there
  double move_usd;    ///< of the machines' time and of carrying the state
  double move_steps;  ///< of slack
};

/// Least expected costs with some slack left, by the level: the rank of the cheapest pool that is up, or the
/// last one, on demand.
class spot_outlook {
 public:
  /// Of `steps` of so many hours, with at most `slack` of them to lose.
  spot_outlook(std::vector<spot_level> levels, std::vector<spot_rates> const& rates, double hours,
               std::size_t steps, std::size_t slack)
      : levels_(std::move(levels)), slack_(slack) {
    std::size_t const n = levels_.size();
    // The next level. Of pools that are dearer than the present one nothing is known.
    std::vector<double> next(n * n);
    for (std::size_t k = 0; k < n; ++k) {
      double none = 1;
      for (std::size_t j = 0; j + 1 < n; ++j) {
        double const up = j > k ? rates[j].usual() : rates[j].up_after(j == k, hours);
        next[k * n + j] = none * up;
        none *= 1 - up;
      }
      next[k * n + n - 1] = none;
    }
    run_.assign((slack + 1) * n, 0);
    // With machines of the level, and without.
    std::vector<double> on = run_, off = run_;
    wait_ = run_;
    for (std::size_t t = 1; t <= steps; ++t) {
      for (std::size_t s = 0; s <= slack; ++s)
        for (std::size_t k = 0; k < n; ++k) {
          double run = levels_[k].step_usd, wait = s > 0 ? 0 : never;
          for (std::size_t j = 0; j < n; ++j) {
            double const p = next[k * n + j];
            run += p * (j == k ? on : off)[s * n + j];
            if (s > 0) wait += p * off[(s - 1) * n + j];
          }
          bool const done = s >= t;
          run_[s * n + k] = done ? 0 : run;
          wait_[s * n + k] = done ? 0 : wait;
        }
      for (std::size_t s = 0; s <= slack; ++s)
        for (std::size_t k = 0; k < n; ++k) {
          on[s * n + k] = std::min(run_[s * n + k], wait_[s * n + k]);
          // Without slack there is no way but on demand, and none back.
          off[s * n + k] = s >= t   ? 0
                           : s == 0 ? levels_.back().move_usd + levels_.back().step_usd * double(t)
                                    : std::min(start(s, k), wait_[s * n + k]);
        }
    }
  }

  double run(std::size_t level) const { return run_[slack_ * levels_.size() + level]; }
  double start(std::size_t level) const { return start(slack_, level); }
  /// What a step of slack is worth: the mean over levels.
  double slack_usd() const {
    std::size_t const n = levels_.size();
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k)
      sum += slack_ > 0 ? run_[(slack_ - 1) * n + k] - run_[slack_ * n + k] : levels_.back().step_usd;
    return std::max(0.0, sum / double(n));
  }
  double wait(std::size_t level) const { return wait_[slack_ * levels_.size() + level]; }

 private:
  static constexpr double never = 1e30;

  double start(std::size_t s, std::size_t k) const {
    std::size_t const n = levels_.size();
    double const here = run_[s * n + k];
    double const less = s > 0 ? run_[(s - 1) * n + k] : here + levels_.back().step_usd;
    return here + levels_[k].move_usd + levels_[k].move_steps * std::max(0.0, less - here);
  }

  std::vector<spot_level> levels_;
  std::size_t slack_;
  std::vector<double> run_, wait_;
};

}  // namespace detail

EDL_INLINE void spot_sightings::saw(double hour, bool is_up) {
  if (up) {
    double const passed = std::max(0.0, hour - at);
    double const part = *up != is_up ? 0.5 : is_up ? 1 : 0;
    up_hours += passed * part;
    down_hours += passed * (1 - part);
    losses += *up && !is_up;
    returns += !*up && is_up;
  }
  up = is_up;
  at = hour;
}

EDL_INLINE spot_placement decide(spot_state const& s) {
  using place = spot_state::place;
  if (s.work <= 0) return {.reason = "the work is done"};
  std::size_t const n = s.pools.size();
  double const time = s.deadline - s.now, slack = time - s.work;
  double const spare = slack - s.on_demand_hours;  // what may be lost before on demand is the only way

  double const step = std::max({s.until_next, time / 60, 1e-6});
  auto const steps = std::size_t(std::max(1.0, std::ceil(time / step)));
  auto const slacks = std::min(steps, std::size_t(std::max(0.0, std::floor(spare / step))));
  std::vector<std::size_t> order(n);  // by price, and a move for each loss
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<detail::spot_rates> rates;
  for (spot_pool const& p : s.pools) rates.emplace_back(p.seen);
  // An hour of slack is worth what the rest would cost more without it: known only by a first outlook.
  double slack_usd = 0;
  std::optional<detail::spot_outlook> outlook;
  auto const move_usd = [&](spot_pool const& p) { return p.price * p.move_hours + p.move_usd; };
  for (int pass = 0; pass < 2; ++pass) {
    auto const worth = [&](std::size_t i) {
      spot_pool const& p = s.pools[i];
      return p.price + rates[i].loss * (move_usd(p) + p.move_hours * slack_usd);
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return worth(a) < worth(b); });
    std::vector<detail::spot_level> levels;
    std::vector<detail::spot_rates> sorted;
    for (std::size_t i : order) {
      levels.push_back({s.pools[i].price * step, move_usd(s.pools[i]), s.pools[i].move_hours / step});
      sorted.push_back(rates[i]);
    }
    levels.push_back({s.on_demand * step, s.on_demand * s.on_demand_hours, s.on_demand_hours / step});
    outlook.emplace(levels, sorted, step, steps, slacks);
    slack_usd = outlook->slack_usd() / step;
  }

  auto const placed = [&](place at, std::size_t pool, double expected, std::string why) {
    if (s.budget && expected > *s.budget)
      why += fmt::format("; the rest is likely to cost {:.2f}, but {:.2f} of the budget are left", expected,
                         *s.budget);
    return spot_placement{.at = at, .pool = pool, .expected = expected, .reason = std::move(why)};
  };
  bool const may_wait = spare >= s.until_next;
  double const on_demand = s.at == place::on_demand ? outlook->run(n) : outlook->start(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    std::size_t const i = order[rank];
    spot_pool const& p = s.pools[i];
    bool const here = s.at == place::spot && s.pool == i;
    if (p.seen.up == false && p.seen.at >= s.now) continue;
    if (p.price >= s.on_demand || (!here && p.move_hours > spare)) continue;
    if (s.at == place::spot && !here) {
      // A move has to pay while both last.
      double const lasts = std::min(s.work, 1 / (rates[i].loss + rates[s.pool].loss));
      if ((s.pools[s.pool].price - p.price) * lasts < move_usd(p) + p.move_hours * slack_usd) continue;
    }
    double const run = here ? outlook->run(rank) : outlook->start(rank), wait = outlook->wait(rank);
    if (s.at == place::on_demand && on_demand < std::min(run, may_wait ? wait : run)) break;
    if (may_wait && wait < run)
      return placed(
          place::nowhere, 0, wait,
          fmt::format("waits: {} costs {:.2f} an hour, and {:.1f} hours of slack are likely to bring less",
                      p.name, p.price, slack));
    return placed(place::spot, i, run,
                  fmt::format("{} {}: {:.2f} an hour, and nothing cheaper is worth a move",
                              here ? "stays in" : "goes to", p.name, p.price));
  }
  if (s.at == place::on_demand)
    return placed(place::on_demand, 0, on_demand, "stays on demand: no spot machines are worth a move");
  if (may_wait && outlook->wait(n) < on_demand)
    return placed(place::nowhere, 0, outlook->wait(n),
                  fmt::format("waits: there are no spot machines, and {:.1f} hours of slack", slack));
  return placed(place::on_demand, 0, on_demand,
                may_wait ? "goes on demand: a wait is likely to cost more"
                         : "goes on demand: the deadline leaves no time for less");
}

}  // namespace edl::autoscaler
