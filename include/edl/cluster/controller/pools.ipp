// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "edl/cluster/autoscaler/spot.hpp"
#include "edl/cluster/controller/pools.hpp"
#include "edl/cluster/kueue/kueue_workload.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
namespace detail::pools {

using kubernetes::node_pool;
using kubernetes::truth;

inline constexpr double hour = 3600;
inline constexpr double usual_start = 60;      ///< seconds, until one has been measured
inline constexpr double usual_standstill = 3;  ///< likewise

inline node_pool const* find(kubernetes::spot_spec const& in, std::string const& name) {
  if (name == kubernetes::on_demand_pool) return &in.on_demand;
  for (node_pool const& p : in.pools)
    if (p.name == name) return &p;
  return nullptr;
}

inline std::string selector(node_pool const& of) { return nlohmann::json(of.labels).dump(); }

class choice {
 public:
  choice(pool_view const& view, pool_memo& memo, kubernetes::training_job_status& status,
         pool_options const& options)
      : view_(view),
        market_(*view.job.spec.spot),
        memo_(memo),
        status_(status),
        spot_(status.spot),
        options_(options),
        now_(view.now) {
    for (node_pool const& p : market_.pools) count(p);
    count(market_.on_demand);
  }

  pool_step run() {
    charge();
    watch();
    pool_step next;
    if (spot_.pool.empty() || !find_current() || now_ >= memo_.decided + options_.interval)
      next.event = decide();
    next.again_at = memo_.decided + options_.interval;
    if (memo_.waiting_since > 0) next.again_at = std::min(next.again_at, memo_.waiting_since + patience());
    return next;
  }

 private:
  struct counts {
    std::uint32_t running = 0, leaving = 0, starting = 0, unplaced = 0;  ///< `leaving`: of those that run
  };

  bool goes(std::string const& node) const {
    return ("," + view_.leaving_nodes + ",").find("," + node + ",") != std::string::npos;
  }

  void count(node_pool const& p) {
    counts& of = counts_[p.name];
    std::string const mark = selector(p);
    for (pod_record const* pod : view_.members) {
      if (pod->who.role != role::worker || pod->at == pod_record::phase::over || pod->pool != mark) continue;
      of.running += pod->at == pod_record::phase::running;
      of.leaving += pod->at == pod_record::phase::running && goes(pod->node);
      of.starting += pod->at == pod_record::phase::pending && !pod->node.empty() && !pod->leaving;
      of.unplaced += pod->node.empty() && !pod->leaving;
    }
  }

  /// Nodes with notice go within two minutes, and another pool may have to be tried before.
  double patience() const {
    bool const urgent = std::ranges::any_of(counts_, [](auto const& one) { return one.second.leaving > 0; });
    return urgent ? options_.patience / 4 : options_.patience;
  }

  bool find_current() const {
    return spot_.pool == kubernetes::no_pool || find(market_, spot_.pool) != nullptr;
  }

  double price(node_pool const& p) const {
    auto const known = view_.prices.find(p.name);
    return known == view_.prices.end() ? p.usd_per_hour : known->second;
  }

  /// In whole seconds, as times are written.
  void charge() {
    double const now = std::floor(now_);
    auto const since = seconds_of(spot_.counted_time);
    bool runs = false;
    for (auto const& [name, of] : counts_) {
      runs = runs || of.running > 0;
      if (since && now > *since)
        spot_.usd += of.running * price(*find(market_, name)) * (now - *since) / hour;
    }
    if (!runs)
      spot_.counted_time.clear();
    else if (!since || now > *since)
      spot_.counted_time = stamp_of(now);
  }

  kubernetes::pool_sightings& sightings_of(std::string const& name) {
    for (auto& s : spot_.pools)
      if (s.name == name) return s;
    return spot_.pools.emplace_back(kubernetes::pool_sightings{.name = name});
  }

  static autoscaler::spot_sightings in_hours(kubernetes::pool_sightings const& s) {
    autoscaler::spot_sightings seen{.up_hours = s.up_hours,
                                    .down_hours = s.down_hours,
                                    .losses = int(s.losses),
                                    .returns = int(s.returns),
                                    .at = seconds_of(s.observed_time).value_or(0) / hour};
    if (s.up != truth::unknown) seen.up = s.up == truth::yes;
    return seen;
  }

  void saw(std::string const& name, bool up) {
    memo_.returned.erase(name);
    kubernetes::pool_sightings& s = sightings_of(name);
    auto seen = in_hours(s);
    seen.saw(now_ / hour, up);
    s = {.name = name,
         .up = up ? truth::yes : truth::no,
         .up_hours = seen.up_hours,
         .down_hours = seen.down_hours,
         .losses = std::uint32_t(seen.losses),
         .returns = std::uint32_t(seen.returns),
         .observed_time = stamp_of(now_)};
  }

  void look_at_nodes(node_pool const& p) {
    if (!view_.nodes_with) return;
    std::uint32_t const now = view_.nodes_with(p.labels);
    auto const was = memo_.nodes.try_emplace(p.name, now).first;
    if (now > was->second && sightings_of(p.name).up == truth::no) {
      memo_.returned.insert(p.name);
      memo_.decided = 0;
    }
    was->second = now;
  }

  void watch() {
    std::erase_if(spot_.pools, [&](auto const& s) { return !find(market_, s.name); });
    for (node_pool const& p : market_.pools) {
      look_at_nodes(p);
      kubernetes::pool_sightings const& s = sightings_of(p.name);
      bool const due =
          s.up != truth::yes || now_ >= seconds_of(s.observed_time).value_or(0) + options_.interval;
      counts const& of = counts_[p.name];
      bool const down = of.leaving > 0 && 2 * of.leaving >= of.running;
      if (down ? s.up != truth::no : of.running > 0 && due) saw(p.name, !down);
      if (down && p.name == spot_.pool) memo_.decided = 0;  // there may be a minute or two
    }
    counts const here = counts_[spot_.pool];
    bool const half = 2 * here.running >= std::max(1u, status_.workers.desired);
    bool const wants = find(market_, spot_.pool) && !half && (here.unplaced > 0 || view_.no_room);
    if (memo_.starting_since > 0 && here.running > 0)
      spot_.start_seconds = std::max(1.0, now_ - memo_.starting_since);
    if (here.running > 0 || here.starting == 0)
      memo_.starting_since = 0;
    else if (memo_.starting_since == 0)
      memo_.starting_since = now_;
    if (!wants)
      memo_.waiting_since = 0;
    else if (memo_.waiting_since == 0)
      memo_.waiting_since = now_;
    if (memo_.waiting_since == 0 || now_ < memo_.waiting_since + patience()) return;
    memo_.waiting_since = memo_.decided = 0;
    if (spot_.pool != kubernetes::on_demand_pool) saw(spot_.pool, false);
  }

  /// Hours of progress that are missing at the speed of the present size, or the fastest; nothing: unknown.
  std::optional<double> missing_work() const {
    double best = 0;
    for (kubernetes::speed_record const& s : status_.speeds) {
      best = std::max(best, s.records_per_second);
      if (s.workers == status_.workers.desired && s.records_per_second > 0) {
        best = s.records_per_second;
        break;
      }
    }
    auto const& p = status_.progress;
    if (best <= 0 || p.total_records == 0) return std::nullopt;
    return double(p.total_records - std::min(p.records, p.total_records)) / best / hour;
  }

  std::optional<job_event> decide() {
    using place = autoscaler::spot_state::place;
    memo_.decided = now_;
    double const workers = std::max({1u, status_.workers.desired, view_.job.spec.workers.min});
    double const start = (spot_.start_seconds > 0 ? spot_.start_seconds : usual_start) / hour;
    double const still = view_.standstill.value_or(usual_standstill) / hour;
    auto const work = missing_work();
    autoscaler::spot_state s{.now = now_ / hour,
                             .deadline = market_.deadline / hour,
                             .until_next = options_.interval / hour,
                             .on_demand = price(market_.on_demand) * workers,
                             .on_demand_hours = options_.patience / hour + start};
    // When all records are done, the master has yet to end the job.
    s.work = std::max(s.until_next, work.value_or(std::max(0.0, s.deadline - s.now) / 2));
    if (market_.budget) s.budget = std::max(0.0, *market_.budget - spot_.usd);
    std::uint32_t most = counts_[market_.on_demand.name].running;
    if (most > 0) s.at = place::on_demand;
    for (std::size_t i = 0; i < market_.pools.size(); ++i) {
      std::string const& name = market_.pools[i].name;
      std::uint32_t const running = counts_[name].running;
      bool const lost = sightings_of(name).up == truth::no;  // its nodes are about to go
      if (running > most && !lost) most = running, s.at = place::spot, s.pool = i;
    }
    // Workers train on while their successors start, which are paid for, too.
    bool const runs = s.at != place::nowhere;
    for (node_pool const& p : market_.pools) {
      autoscaler::spot_pool one{.name = p.name,
                                .price = price(p) * workers,
                                .move_hours = runs ? still : start,
                                .seen = in_hours(sightings_of(p.name))};
      if (runs) one.move_usd = one.price * start;
      if (one.seen.up == false && !memo_.returned.contains(p.name) &&
          now_ < one.seen.at * hour + options_.retry)
        one.seen.at = s.now;
      s.pools.push_back(std::move(one));
    }
    auto const found = autoscaler::decide(s);
    std::string const to = found.at == place::spot        ? s.pools[found.pool].name
                           : found.at == place::on_demand ? std::string(kubernetes::on_demand_pool)
                                                          : std::string(kubernetes::no_pool);
    spot_.reason = found.reason + (work ? "" : "; its speed is not known yet");
    if (spot_.pool == to) return std::nullopt;
    memo_.waiting_since = memo_.starting_since = 0;
    spot_.pool = to;
    spot_.time = stamp_of(now_);
    return job_event{false, to == kubernetes::no_pool ? "WaitsForPool" : "PoolChosen", spot_.reason};
  }

  pool_view const& view_;
  kubernetes::spot_spec const& market_;
  pool_memo& memo_;
  kubernetes::training_job_status& status_;
  kubernetes::spot_status& spot_;
  pool_options const& options_;
  double now_;
  std::map<std::string, counts> counts_;  ///< by pool
};

}  // namespace detail::pools

EDL_INLINE pool_prices read_prices(std::string const& text) {
  nlohmann::json const all = parse_json(text);
  if (!all.is_object())
    throw error("is " + (all.is_discarded() ? why_no_json(text) : "no JSON object") +
                ": expected prices by pool, as {\"us-east-1a\": 0.92}");
  pool_prices prices;
  for (auto const& [name, value] : all.items()) {
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1e6))
      throw error(fmt::format("has {}: {}: expected USD per hour, from 0 to 1000000", printable(name, 100),
                              printable(value.dump(), 100)));
    prices[name] = value.get<double>();
  }
  return prices;
}

EDL_INLINE bool waits_for_pool(kubernetes::training_job const& job) {
  return job.spec.spot && job.status.spot.pool == kubernetes::no_pool;
}

EDL_INLINE std::string pool_selector(kubernetes::training_job const& job,
                                     kubernetes::training_job_status const& status) {
  if (!job.spec.spot) return {};
  auto const* const pool = detail::pools::find(*job.spec.spot, status.spot.pool);
  return pool ? detail::pools::selector(*pool) : std::string();
}

EDL_INLINE kubernetes::template_text template_in_pool(kubernetes::training_job const& job) {
  auto const* const pool =
      job.spec.spot ? detail::pools::find(*job.spec.spot, job.status.spot.pool) : nullptr;
  if (!pool) return job.spec.worker;
  auto next = kueue::with_changes(job.spec.worker, {.node_selector = pool->labels});
  invariant(next.conflict.empty(), "the labels of pools agree with the template: the job was read");
  return std::move(next.text);
}

EDL_INLINE pool_step choose_pool(pool_view const& view, pool_memo& memo,
                                 kubernetes::training_job_status& status, pool_options const& options) {
  invariant(view.job.spec.spot.has_value(), "only jobs with spec.spot have pools");
  return detail::pools::choice(view, memo, status, options).run();
}

}  // namespace edl::controller
