// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>

#include "edl/cluster/controller/inventory.hpp"
#include "edl/cluster/controller/pod_marks.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/cluster/kueue/kueue_objects.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {

EDL_INLINE void inventory::add_job(job_entry const& e, pod_marks& marks, autoscaler::cluster_view& to) const {
  kubernetes::training_job const& is = e.job;
  if (!e.invalid.empty() || !is.ours() || is.finished() || !is.deleted.empty()) return;
  auto const mine = pods_of(is.uid);
  edl::autoscaler::job_view j{.uid = is.uid, .name = title(is)};
  j.priority = priority_of(e.worker_class);
  j.min = int(is.spec.workers.min);
  j.max = int(is.spec.workers.max);
  if (is.spec.workers.replicas) j.manual = int(*is.spec.workers.replicas);
  auto const shape = [&](autoscaler::shared<autoscaler::pod_shape> const& of, autoscaler::label_set labels,
                         role what) {
    if (marks.none()) return *of;
    for (auto const& [key, value] : kubernetes::member_labels(is.name, what)) labels.set(key, value);
    return *marks.marked(of, is.space, labels);
  };
  j.worker = shape(e.worker, e.worker_labels, role::worker);
  j.submitted = seconds_of(is.created).value_or(to.now);
  j.admitted = is_true(is.status, kubernetes::condition_type::admitted);
  j.workers = j.admitted ? int(is.status.workers.desired) : 0;
  if (!kueue::queue_of(is).empty()) {
    // Until Kueue has decided, a plan must not make room for the job.
    if (e.memo.queue_decided ? e.memo.queue_holds : mine.empty())
      j.suspended = true, j.why_suspended = "Kueue does not admit it";
    if (e.memo.queue_most > 0) j.max = std::max(j.min, std::min(j.max, int(e.memo.queue_most)));
  }
  // A job that the API server refuses must not reserve room.
  if (!e.memo.stalled.empty() && mine.empty()) j.suspended = true, j.why_suspended = e.memo.why;
  if (waits_for_pool(is)) j.suspended = true, j.why_suspended = is.status.spot.reason;
  if (is.spec.suspend) j.suspended = true, j.why_suspended.clear();
  bool master = false;
  std::uint32_t servers = 0;
  job_report const* report = nullptr;
  for (pod_record const* p : mine) {
    if (p->at == pod_record::phase::over || p->leaving) continue;
    servers += p->who.role == role::server;
    if (!p->master) continue;
    master = true;
    if (p->master->report) report = &*p->master->report;
  }
  if (!j.suspended) {
    if (!master) j.fixed.push_back(shape(e.master, e.master_labels, role::master));
    for (; servers < is.spec.servers; ++servers)
      j.fixed.push_back(shape(e.server, e.server_labels, role::server));
  }
  for (kubernetes::speed_record const& s : is.status.speeds)
    j.speeds.push_back({int(s.workers), s.records_per_second});
  if (report) {
    for (kubernetes::speed_record const& s : report->speeds) {
      auto const known =
          std::find_if(j.speeds.begin(), j.speeds.end(),
                       [&](autoscaler::measured_speed const& o) { return o.workers == int(s.workers); });
      if (known == j.speeds.end())
        j.speeds.push_back({int(s.workers), s.records_per_second});
      else
        known->records_per_s = s.records_per_second;
    }
    if (report->total_records > report->records)
      j.records_left = double(report->total_records - report->records);
    // At least one second, because the reported figure excludes costs to others, such as starting a pod.
    if (report->standstill_s) j.change_cost = std::clamp(*report->standstill_s, 1.0, 60.0);
  } else if (is.status.progress.total_records > is.status.progress.records) {
    j.records_left = double(is.status.progress.total_records - is.status.progress.records);
  }
  if (!is.status.scale_records.empty()) j.last_resized = seconds_of(is.status.scale_records.front().time);
  to.jobs.push_back(std::move(j));
}

/// Marks the workers that a job has been asked to give up and whose pods are not being deleted yet. The plan
/// treats them as gone. Otherwise it would decide the same again or, for a job resized just now, the
/// opposite.
EDL_INLINE void inventory::mark_leaving(job_entry const& e, std::unordered_set<std::string>& keys) const {
  if (!is_true(e.job.status, kubernetes::condition_type::admitted)) return;
  std::vector<pod_record const*> there;
  for (pod_record const* p : pods_of(e.job.uid))
    if (p->who.role == role::worker && p->at != pod_record::phase::over && !p->leaving) there.push_back(p);
  std::size_t const stay = e.job.status.workers.desired;
  if (there.size() <= stay) return;
  auto const rank = [&](pod_record const* p) {
    bool const chosen = std::find(e.memo.leave.begin(), e.memo.leave.end(), p->who.id) != e.memo.leave.end();
    return std::tuple(!chosen, !p->node.empty(), -std::int64_t(p->who.id));
  };
  std::sort(there.begin(), there.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  for (std::size_t i = 0; i + stay < there.size(); ++i) keys.insert(there[i]->key);
}

EDL_INLINE autoscaler::cluster_view inventory::view(
    double now, std::unordered_map<std::string, autoscaler::reservation> const& promised) const {
  autoscaler::cluster_view v{.now = now};
  v.nodes.reserve(nodes_.size());
  for (auto const& [name, n] : nodes_) v.nodes.push_back(n.seen);
  std::unordered_set<std::string> leaving;
  pod_marks marks;
  for (auto const& s : shapes_) marks.look_at(*s);
  for (auto const& [key, e] : jobs_) {
    add_job(e, marks, v);
    mark_leaving(e, leaving);
  }
  for (auto const& [key, p] : pods_) {
    bool const over = p.at == pod_record::phase::over;
    if (over && !p.outlived) continue;
    std::string const* const owner = job_key_of(p);
    job_entry const* const job = owner ? &jobs_.at(*owner) : nullptr;
    bool const worker = job && !over && p.who.role == role::worker;
    bool const going = p.leaving || leaving.contains(key);
    if (p.node.empty()) {
      if (going || (!worker && !p.wants_room)) continue;
      if (job && (job->job.finished() || job->job.spec.suspend || !job->job.deleted.empty())) continue;
    }
    edl::autoscaler::pod one{.name = key,
                             .job = worker ? p.owner : std::string(),
                             .node = p.node,
                             .leaving = going,
                             .blocked = p.node.empty() && !p.wants_room,
                             .priority = p.priority,
                             .shape = marks.none() ? p.shape : marks.marked(p.shape, p.space(), p.labels)};
    if (p.node.empty()) {
      if (auto const at = promised.find(key); at != promised.end()) {
        one.nominated = at->second.node;
        one.nominated_at = at->second.since;
      } else if (!p.nominated.empty()) {
        one.nominated = p.nominated;
        one.nominated_at = now;
      }
    }
    v.pods.push_back(std::move(one));
  }
  // Sort, so that the result does not depend on the hash tables' order.
  std::sort(v.nodes.begin(), v.nodes.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  std::sort(v.pods.begin(), v.pods.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  std::sort(v.jobs.begin(), v.jobs.end(), [](auto const& a, auto const& b) { return a.uid < b.uid; });
  return v;
}

}  // namespace edl::controller
