// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/cluster/controller/job_status.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {

EDL_INLINE void count_pods(kubernetes::training_job_status& to, kubernetes::training_job const& job,
                           std::vector<pod_record const*> const& members, pod_record const* master) {
  bool const active = is_true(to, kubernetes::condition_type::admitted) &&
                      !is_true(to, kubernetes::condition_type::succeeded) &&
                      !is_true(to, kubernetes::condition_type::failed) &&
                      !is_true(to, kubernetes::condition_type::suspended);
  to.master = {.desired = active ? 1u : 0u};
  to.servers = {.desired = active ? job.spec.servers : 0u};
  to.workers = {.desired = active ? to.workers.desired : 0u};
  auto const count = [](kubernetes::role_counts& of, pod_record const& p) {
    if (p.leaving || p.at == pod_record::phase::over) return;
    ++(p.at == pod_record::phase::running ? of.running : of.pending);
  };
  if (master) count(to.master, *master);
  for (pod_record const* p : members) {
    if (p->who.role == role::server) count(to.servers, *p);
    if (p->who.role == role::worker) count(to.workers, *p);
  }
  to.replicas = to.workers.running;
}

EDL_INLINE void take_report(kubernetes::training_job_status& to, job_report const& report, double now) {
  kubernetes::job_progress next{
      .records = report.records,
      .total_records = report.total_records,
      .epoch = report.epoch,
      .epochs = report.epochs,
      .version = report.version,
      .records_per_second = std::uint64_t(std::llround(std::min(report.records_per_s, 9e15))),
      .estimated_end = to.progress.estimated_end,
      .observed_time = to.progress.observed_time};
  if (next != to.progress) {
    next.observed_time = stamp_of(now);
    next.estimated_end = report.seconds_left ? stamp_of(now + *report.seconds_left) : std::string();
    to.progress = std::move(next);
  }
  for (kubernetes::speed_record const& s : report.speeds) {
    auto const at =
        std::find_if(to.speeds.begin(), to.speeds.end(),
                     [&](kubernetes::speed_record const& known) { return known.workers == s.workers; });
    if (at != to.speeds.end())
      *at = s;
    else if (to.speeds.size() < kubernetes::most_speeds)
      to.speeds.push_back(s);
  }
  std::sort(to.speeds.begin(), to.speeds.end(),
            [](kubernetes::speed_record const& a, kubernetes::speed_record const& b) {
              return a.workers < b.workers;
            });
}

EDL_INLINE bool differs_in_substance(kubernetes::training_job_status const& a,
                                     kubernetes::training_job_status const& b) {
  auto const bare = [](kubernetes::training_job_status s) {
    s.progress = {};
    s.speeds.clear();
    s.spot = {.pool = s.spot.pool};
    for (kubernetes::condition& c : s.conditions) c.message.clear(), c.observed_generation = 0;
    return s;
  };
  return bare(a) != bare(b);
}

EDL_INLINE std::vector<job_event> events_of(kubernetes::training_job_status const& before,
                                            kubernetes::training_job_status const& after) {
  std::vector<job_event> all;
  for (kubernetes::condition const& c : after.conditions) {
    if (c.type == kubernetes::condition_type::reconciling || c.type == kubernetes::condition_type::resizing)
      continue;
    kubernetes::condition const* const was = find_condition(before, c.type);
    if (was && was->status == c.status && was->reason == c.reason) continue;
    bool const yes = c.status == kubernetes::truth::yes;
    bool const bad = (yes && (c.type == kubernetes::condition_type::stalled ||
                              c.type == kubernetes::condition_type::failed)) ||
                     (c.type == kubernetes::condition_type::running &&
                      (c.reason == "AttemptFailed" || c.reason == "MasterLost"));
    bool const quiet = !yes && c.type == kubernetes::condition_type::stalled;
    if (!quiet && !c.message.empty()) all.push_back({bad, c.reason, c.message});
  }
  return all;
}

}  // namespace edl::controller
