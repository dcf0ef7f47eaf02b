// SPDX-License-Identifier: Apache-2.0
#include "simulate/spot_policies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace edl::simulate {
uniform_progress::want uniform_progress::wanted(spot_job const& job, want current, bool spot) {
  double const pace = job.what().work / job.deadline(), still = job.rules().standstill;
  bool const behind = job.done() < job.elapsed() * pace;
  bool const ahead = (job.elapsed() + 2 * still) * pace < job.done();
  leaves_ = false;
  want to = spot ? want::spot : behind ? want::on_demand : want::nothing;
  if (current == want::on_demand && (!spot || !ahead)) to = want::on_demand;
  double const spare = job.time_left() - job.whole(job.left() + 2 * still);
  if ((alone_ ? spare <= 0 : spare < 0) && current != want::spot) to = want::on_demand;
  if (job.whole(job.left() + still) >= job.time_left()) {
    to = current == want::spot && job.standing() < 1e-3 ? want::spot : want::on_demand;
    if (still == 0 && spot) to = want::spot;
  }
  if (!alone_ && current == want::on_demand && spot && to == want::on_demand && ahead)
    to = want::spot, leaves_ = true;
  return to;
}

void uniform_progress::decide(spot_job& job) {
  int const was = job.running();
  want const current = was == spot_job::none ? want::nothing : job.on_demand() ? want::on_demand : want::spot;
  want to = wanted(job, current, !alone_ || job.up(0));
  int const at = was != spot_job::none ? was : std::max(job.last(), 0);
  if (was != spot_job::none) {
    seen_ = was;
    if (to == current) return;
    job.stop();
    if (to == want::nothing) return;
  }
  if (to == want::spot) {
    std::vector<int> order;
    for (int z = 0; z < job.zones(); ++z) order.push_back(z);
    auto const lost = [&](int z) {
      return seen_ != spot_job::none && job.zone(z).region == job.zone(seen_).region;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::pair(lost(a), job.price(a)) < std::pair(lost(b), job.price(b));
    });
    for (int z : order)
      if (job.try_spot(z)) return;
    if (leaves_) return;
    to = wanted(job, want::nothing, false);
  }
  if (to == want::on_demand) job.go_on_demand(at);
}

void skynomad::begin(int z, bool probe, spot_job const& job) {
  zones_[std::size_t(z)].since = job.elapsed();
  zones_[std::size_t(z)].probed = probe;
}

void skynomad::end(int z, bool failed, spot_job const& job) {
  zone& s = zones_[std::size_t(z)];
  if (s.since) s.seen.push_back({*s.since, job.elapsed(), failed});
  s.since.reset();
  if (failed) ++s.failures;
}

skynomad::curve skynomad::hazard(int z) const {
  curve all;
  std::set<double> ends;
  auto const length = [](segment const& s) { return (s.to - s.from) / hour; };
  for (segment const& s : zones_[std::size_t(z)].seen)
    if (s.failed) ends.insert(length(s));
  for (double tau : ends) {
    double failed = 0, survived = 0;
    for (segment const& s : zones_[std::size_t(z)].seen) {
      failed += s.failed && std::abs(length(s) - tau) <= 1e-9;
      survived += length(s) + 1e-9 >= tau;
    }
    all.knots.emplace_back(tau, failed / survived);
  }
  if (!all.knots.empty()) all.tail = std::max(all.knots.back().second, 1e-8);
  return all;
}

double skynomad::lifetime(int z, spot_job const& job) const {
  zone const& s = zones_[std::size_t(z)];
  curve const c = hazard(z);
  double const g = std::max(1e-6, s.burst);
  double t = s.since ? (job.elapsed() - *s.since) / hour : 0, expected = 0, survives = 1;
  for (auto const& [tau, step] : c.knots) {
    if (tau <= t + 1e-12) continue;
    expected += survives * (tau - t);
    survives *= std::exp(-g * step);
    t = tau;
  }
  double const ends = 1 - std::exp(-g * c.tail);
  expected += survives * job.tick() / hour / (ends > 1e-9 ? ends : std::max(g * c.tail, 1e-9));
  return std::min({expected, 2.0, (job.deadline() - job.elapsed()) / hour});
}

double skynomad::available(int z, spot_job const& job) const {
  zone const& s = zones_[std::size_t(z)];
  double const now = job.elapsed(), from = std::max(0.0, now - 12 * hour);
  double up = s.since ? now - std::max(*s.since, from) : 0;
  for (segment const& seg : s.seen) up += std::max(0.0, std::min(seg.to, now) - std::max(seg.from, from));
  return now > 0 ? std::min(1.0, up / std::min(12 * hour, now)) : 0;
}

// Where the line of recent progress meets the one below which only on demand arrives in time.
double skynomad::on_demand_part(spot_job const& job) const {
  double const t = job.elapsed(), p = job.done(), end = job.deadline();
  if (t <= 0) return 0;
  if (std::abs(p - t) < 1e-6) return 0.5;
  double const from = std::max(0.0, t - 10 * hour);
  double before = 0;
  for (int i = 0; i + 1 < int(from / job.tick()); ++i) before += job.progress()[std::size_t(i)];
  double const rate = std::clamp((p - before) / (t - from), 0.0, 1.0);
  if (std::abs(rate - 1) < 1e-6) return 0;
  double const meet = (rate * t - p + (job.what().work + 2 * job.rules().standstill - end)) / (rate - 1);
  return meet >= end ? 0 : meet <= 0 ? 1 : std::clamp((end - meet) / (end - t), 0.0, 1.0);
}

double skynomad::worth(spot_job const& job) const {
  double const left = job.left(), time = job.deadline() - job.elapsed(),
               still = job.rules().standstill / hour;
  double on_demand = job.zone(0).on_demand;
  struct offer {
    double price, contribution;
  };
  std::vector<offer> offers;
  for (int z = 0; z < job.zones(); ++z) {
    on_demand = std::min(on_demand, job.zone(z).on_demand);
    double const lives = lifetime(z, job), useful = lives - still;
    double const contribution = useful > 0 ? available(z, job) * time * useful / lives : 0;
    if (contribution > 0) offers.push_back({job.price(z) * lives / std::max(useful, 1e-6), contribution});
  }
  std::stable_sort(offers.begin(), offers.end(), [](auto& a, auto& b) { return a.price < b.price; });
  double dear = on_demand_part(job) * left, spot = left - dear, cost = 0;
  int used = 0;
  for (offer const& o : offers) {
    if (spot <= 0) break;
    double const part = std::min(o.contribution, spot);
    cost += part / hour * o.price;
    spot -= part;
    ++used;
  }
  dear += std::max(spot, 0.0);
  cost += dear / hour * on_demand;
  used += dear > 0;
  double const egress = std::max(0, used - 1) * job.what().gigabytes * 0.02;
  return 1.2 * (cost + egress) / (left / hour);
}

void skynomad::update_bursts(spot_job const& job) {
  double const tick = job.tick() / hour;
  for (int r = 0; r < job.zones(); ++r) {
    zone& z = zones_[std::size_t(r)];
    curve const c = hazard(r);
    auto const total = [&](double t) {
      double sum = 0, last = 0;
      if (t <= 0) return 0.0;
      for (auto const& [tau, step] : c.knots) {
        if (tau >= t) break;
        sum += step;
        last = tau;
      }
      return sum + (t > last ? (t - last) * c.tail : 0);
    };
    double risk = 0;
    if (z.since) {
      double const age = (job.elapsed() - *z.since) / hour;
      double const before = z.last_age && z.last_probed == z.probed ? *z.last_age : std::max(age - tick, 0.0);
      z.last_age = age;
      z.last_probed = z.probed;
      risk = std::max(0.0, total(age) - total(before));
      if (risk <= 0 && c.knots.empty()) risk = c.tail * tick;
      if (risk <= 0 && !c.knots.empty() && before >= c.knots.back().first)
        risk = c.tail * std::max(0.0, age - before);
    } else {
      z.last_age.reset();
      if (z.failures > 0 && c.knots.empty()) risk = c.tail * tick;
    }
    if (z.failures > 0 && risk <= 0) risk = c.tail * tick;
    if (risk > 0 || z.failures > 0) {
      z.events.push_back({risk, z.failures});
      double sum = 0;
      for (event const& e : z.events) sum += e.risk;
      while (!z.events.empty() && sum - z.events.front().risk >= 8) {
        sum -= z.events.front().risk;
        z.events.pop_front();
      }
      // The densest of the last events, whose risk is at most 1.
      double best = 0, risks = 0, failures = 0;
      bool any = false;
      int n = 0;
      for (auto e = z.events.rbegin(); e != z.events.rend(); ++e) {
        risks += e->risk;
        failures += e->failures;
        if (++n == 1 && risks <= 1e-6 && failures <= 0) continue;
        if (risks > 1 + 1e-9 && n > 1) break;
        double const ratio = risks > 0 ? failures / risks : failures > 0 ? failures / 1e-6 : 0;
        if (!any || ratio > best + 1e-9) best = ratio;
        any = true;
        if (risks > 1 + 1e-9) break;
      }
      z.burst = sum < 1 ? 1 : std::max(1.0, best);
    }
    z.failures = 0;
  }
}

void skynomad::probe(spot_job& job, int except) {
  for (int r = 0; r < job.zones(); ++r) {
    zone& z = zones_[std::size_t(r)];
    if (r == except || z.watched || z.refused || job.now() < z.next_probe) continue;
    z.next_probe = job.now() + 6;
    if (job.probe(r)) {
      begin(r, true, job);
      z.watched = true;
      z.last_age = 0, z.last_probed = true;
    } else {
      ++z.failures;
      z.last_age.reset();
    }
  }
  for (zone& z : zones_) z.refused = false;
}

void skynomad::decide(spot_job& job) {
  int const current = job.running();
  bool const spot = current != spot_job::none && !job.on_demand();
  if (active_ != spot_job::none && !(spot && current == active_)) {
    end(active_, !left_, job);
    active_ = spot_job::none;
    left_ = false;
  }
  update_bursts(job);
  double const v = worth(job), still = job.rules().standstill / hour;
  if (current != spot_job::none) last_ = current;
  auto const net = [&](int z, bool stays) {
    double const lives = lifetime(z, job), useful = lives - (stays ? 0 : still);
    return useful > 0 ? (v * useful - job.price(z) * lives) / lives
                      : -std::numeric_limits<double>::infinity();
  };
  double const now = current == spot_job::none ? 0
                     : spot                    ? net(current, true)
                                               : v - job.zone(current).on_demand;
  double const margin = 0.5 + 0.0002 * job.what().gigabytes + 0.05 * v;
  struct option {
    double value;
    int zone;
    bool on_demand;
  };
  std::vector<option> options{{0, spot_job::none, false}};
  auto const add = [&](double value, int z, bool on_demand, bool gated) {
    if (value >= 0 && !(gated && value <= now + margin)) options.push_back({value, z, on_demand});
  };
  for (int z = 0; z < job.zones(); ++z) {
    double const away = last_ == spot_job::none || last_ == z
                            ? 0
                            : (job.carry_seconds(last_, z) / hour * v + job.carry_usd(last_, z)) /
                                  std::max(lifetime(z, job), 1e-6);
    add(net(z, spot && z == current) - away, z, false, current != spot_job::none && z != current);
  }
  for (int z = 0; z < job.zones(); ++z) {
    if (current == z && !spot) continue;
    double const away = last_ == spot_job::none || last_ == z
                            ? 0
                            : (still + job.carry_seconds(last_, z) / hour) * v + job.carry_usd(last_, z);
    add(v - job.zone(z).on_demand - away, z, true, current != spot_job::none);
  }
  std::stable_sort(options.begin(), options.end(), [](auto& a, auto& b) { return a.value > b.value; });
  for (option const& o : options) {
    if (o.value <= now) break;
    if (o.zone == current && o.zone != spot_job::none && o.on_demand == !spot) continue;
    if (o.zone == spot_job::none) {
      last_ = spot_job::none;
      probe(job, spot_job::none);
      return;
    }
    zone& z = zones_[std::size_t(o.zone)];
    if (o.on_demand) {
      job.go_on_demand(o.zone);
      left_ = left_ || (active_ != spot_job::none && active_ == current);
    } else {
      if (z.watched) {
        end(o.zone, false, job);
        z.watched = false;
        z.last_age.reset();
      }
      if (!job.try_spot(o.zone)) {
        z.refused = true;
        ++z.failures;
        continue;
      }
      begin(o.zone, false, job);
      active_ = o.zone;
      left_ = false;
      z.refused = false;
      z.last_age = 0, z.last_probed = false;
    }
    last_ = o.zone;
    probe(job, o.zone);
    return;
  }
  probe(job, current);
}

void edl_policy::decide(spot_job& job) {
  using place = autoscaler::spot_state::place;
  double const now = job.elapsed() / hour;
  int const at = job.running();
  if (was_ != spot_job::none) seen_[std::size_t(was_)].saw(now, at == was_ && !job.on_demand());
  // On demand: where the rest costs least, of the zones from which it still arrives in time.
  auto const still = [&](int from, int z) {
    return (job.rules().standstill + job.carry_seconds(from, z)) / hour;
  };
  double const work = (job.left() + (at == spot_job::none ? 0 : job.standing())) / hour;
  int dear = std::max(job.last(), 0);
  double home = 0;  // a start on demand in the zone where the state is
  auto const rest = [&](int z) {
    return job.zone(z).on_demand * (work + still(job.last(), z)) + job.carry_usd(job.last(), z);
  };
  for (int z = 0; z < job.zones(); ++z) {
    home = std::max(home, still(z, z));
    if (now + work + still(job.last(), z) <= job.deadline() / hour && rest(z) < rest(dear)) dear = z;
  }
  if (at != spot_job::none && job.on_demand()) dear = at;
  autoscaler::spot_state s{.now = now,
                           .deadline = job.deadline() / hour,
                           .work = work,
                           .until_next = job.tick() / hour,
                           .on_demand = job.zone(dear).on_demand,
                           .on_demand_hours = home};
  s.at = at == spot_job::none ? place::nowhere : job.on_demand() ? place::on_demand : place::spot;
  s.pool = std::size_t(std::max(at, 0));
  for (int z = 0; z < job.zones(); ++z)
    s.pools.push_back({.name = job.zone(z).name,
                       .price = job.price(z),
                       .move_hours = still(job.last(), z),
                       .move_usd = job.carry_usd(job.last(), z),
                       .seen = seen_[std::size_t(z)]});
  was_ = spot_job::none;
  for (;;) {
    autoscaler::spot_placement const to = autoscaler::decide(s);
    if (to.at == place::nowhere) return job.stop();
    if (to.at == place::on_demand) return job.go_on_demand(s.at == place::on_demand ? at : dear);
    int const z = int(to.pool);
    bool const there = (s.at == place::spot && z == at) || job.try_spot(z);
    seen_[to.pool].saw(now, there);
    s.pools[to.pool].seen = seen_[to.pool];
    if (there) {
      was_ = z;
      return;
    }
  }
}

}  // namespace edl::simulate
