// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "edl/cluster/controller/control.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE std::vector<std::string> control::take(autoscaler::plan const& p) {
  std::unordered_map<std::string, autoscaler::job_plan> next;
  std::vector<std::string> keys;
  for (autoscaler::job_plan const& one : p.jobs) next.emplace(one.uid, one);
  for (auto const& [key, e] : known_.jobs()) {
    auto const now = next.find(e.job.uid);
    if (now == next.end()) continue;
    auto const was = plans_.find(e.job.uid);
    bool const same = was != plans_.end() && was->second.admitted == now->second.admitted &&
                      was->second.workers == now->second.workers &&
                      (now->second.admitted || was->second.reason == now->second.reason);
    bool const done = is_true(e.job.status, kubernetes::condition_type::admitted) == now->second.admitted &&
                      int(e.job.status.workers.desired) == now->second.workers;
    if (!same || (now->second.admitted && !done)) keys.push_back(key);
  }
  plans_ = std::move(next);
  promised_.clear();
  for (autoscaler::reservation const& r : p.reservations) promised_[r.pod] = r;
  return keys;
}

EDL_INLINE std::vector<std::string> control::take(pool_prices prices) {
  prices_ = std::move(prices);
  std::vector<std::string> keys;
  for (auto const& [key, e] : known_.jobs())
    if (e.job.spec.spot) {
      known_.job(key)->memo.pools.decided = 0;
      keys.push_back(key);
    }
  return keys;
}

EDL_INLINE std::vector<std::string> control::concerned(kueue::object_store::change const& c) const {
  std::vector<std::string> keys;
  if (c.all)
    for (auto const& [key, e] : known_.jobs())
      if (!kueue::queue_of(e.job).empty()) keys.push_back(key);
  for (std::string const& uid : c.owners) {
    if (std::string const* const key = known_.key_of(uid)) keys.push_back(*key);
    // A Workload whose job is gone is handled under that job's key.
    else
      for (kueue::workload const* w : queues_.workloads_of(uid)) keys.push_back(w->space + "/" + w->job);
  }
  return keys;
}

/// Kueue's decision about the job; nothing if Kueue does not manage the job.
EDL_INLINE std::optional<kueue::assessment> control::ask_kueue_of(job_entry& entry, task& t,
                                                                  double now) const {
  kubernetes::training_job const& job = entry.job;
  auto const mine = queues_.workloads_of(job.uid);
  if (!job.ours() || !entry.invalid.empty() || (kueue::queue_of(job).empty() && mine.empty()))
    return std::nullopt;
  kueue::situation is{.job = job, .workloads = mine, .served = queues_.served(), .now = now};
  for (pod_record const* p : known_.pods_of(job.uid)) {
    if (p->at == pod_record::phase::over) continue;
    ++is.pods.all;
    bool const runs = p->at == pod_record::phase::running && !p->leaving;
    is.pods.workers += p->who.role == role::worker;
    is.pods.workers_running += runs && p->who.role == role::worker;
    is.pods.servers_running += runs && p->who.role == role::server;
  }
  for (pod_record const* p : known_.pods_of(job.uid)) {
    if (!p->master || p->at == pod_record::phase::over) continue;
    master_state const& m = *p->master;
    is.pods.master_ready = m.ready;
    auto const requested_size = kubernetes::number(m.requested_size);
    is.pods.workers =
        std::max({is.pods.workers, requested_size.value_or(0), m.size ? m.size->workers : m.first_size});
  }
  // Nor fewer than the next master would start with.
  if (is_true(job.status, kubernetes::condition_type::admitted))
    is.pods.workers = std::max(is.pods.workers, job.status.workers.desired);
  auto const plan = plans_.find(job.uid);
  if (plan != plans_.end() && plan->second.admitted)
    is.wanted = std::uint32_t(std::max(0, plan->second.workers));
  is.flavor = [this](std::string const& name) { return queues_.flavor(name); };
  is.priority = [this](kueue::priority_choice const& p) {
    return p.of_kueue ? queues_.priority(p.name) : known_.priority_class(p.name);
  };
  auto v = queues_.complete() ? kueue::judge(is) : unknown(is);
  // The plan does not bound an elastic job, because the planned size is what the job requests quota for.
  std::uint32_t const most = kueue::elastic(job) ? 0 : v.most_workers.value_or(0);
  job_memo& memo = entry.memo;
  t.plan_anew = !memo.queue_decided || memo.queue_holds == v.may_run || memo.queue_most != most;
  memo.queue_decided = true;
  memo.queue_holds = !v.may_run;
  memo.queue_most = most;
  return v;
}

/// The assessment while Kueue's objects have not been listed: running jobs continue and no job starts.
EDL_INLINE kueue::assessment control::unknown(kueue::situation const& is) const {
  kueue::assessment v{.queued = true, .may_run = is.pods.all > 0, .may_start = false};
  v.most_workers = std::max(is.job.spec.workers.min, is.job.status.workers.desired);
  v.stalled = !queues_.trouble().empty();
  v.reason = v.stalled ? "KueueNotReadable" : "KueueNotRead";
  v.message = v.stalled ? "cannot list Kueue's objects: " + queues_.trouble() +
                              "; k8s/controller-kueue.yaml gives the rights"
                        : "Kueue's objects have not been listed yet.";
  return v;
}

/// Removes the finalizers that hold the Workloads of a deleted job once its last pod is gone: until then they
/// must keep their quota. The API server deletes the objects.
EDL_INLINE void control::release_workloads(std::string const& key, task& t) const {
  for (auto const& [owner, all] : queues_.workloads()) {
    if (known_.knows(owner)) continue;  // `queues_` has no Workloads of unwatched namespaces
    std::uint32_t pods = 0;
    for (pod_record const* p : known_.pods_of(owner)) pods += p->at != pod_record::phase::over;
    for (auto const& [name, w] : all)
      if (w.space + "/" + w.job == key)
        for (kueue::api_write& r : kueue::judge_orphan(w, pods))
          t.decision.actions.push_back(ask_kueue{std::move(r)});
  }
}

EDL_INLINE control::task control::decide(std::string const& key, double now) {
  std::string const space = key.substr(0, key.find('/')), name = key.substr(space.size() + 1);
  job_entry* const entry = known_.job(key);
  pod_record const* const master = known_.pod(space + "/elasticdl-" + name + "-master");
  // A TrainingJob in another namespace may exist although this controller does not watch it.
  bool const orphan = (space_.empty() || space_ == space) && master && master->held &&
                      !master->owner.empty() && !known_.knows(master->owner);
  task t;
  if (!entry) {
    t.job.space = space, t.job.name = name;
    if (orphan) t.decision.actions.push_back(release_pod{master->name(), master->uid});
    release_workloads(key, t);
    return t;
  }
  t.job = entry->job;
  job_situation is{.entry = *entry, .master = master, .now = now};
  for (pod_record const* p : known_.pods_of(entry->job.uid))
    if (p != master) is.members.push_back(p);
  if (auto const p = plans_.find(entry->job.uid); p != plans_.end()) is.plan = p->second;
  is.queue = ask_kueue_of(*entry, t, now);
  is.state_of = [this](std::string const& node) { return known_.state_of(node); };
  is.pressure_of = [this](std::string const& node) { return known_.pressure_of(node); };
  if (entry->job.spec.spot) {
    is.prices = prices_;
    is.nodes_with = [this](auto const& labels) { return known_.nodes_with(labels); };
  }
  t.decision = reconcile(is, entry->memo, reconciling_);
  if (orphan) t.decision.actions.push_back(release_pod{master->name(), master->uid});
  return t;
}

EDL_INLINE inventory_change control::learn(task const& of, execution const& came, double now) {
  inventory_change c;
  if (job_entry* const entry = known_.job(of.job.space + "/" + of.job.name);
      entry && entry->job.uid == of.job.uid) {
    if (came.status_written) entry->memo.status_written = now;
    if (!came.stalled.empty()) {
      entry->memo.stalled = came.stalled;
      entry->memo.why = came.why;
      entry->memo.retry_at = now + came.retry_after;
      c.jobs.push_back(of.job.space + "/" + of.job.name);
      c.plan = inventory_change::weight::hard;
    }
  }
  for (auto const& [kind, object] : came.seen) c.add(known_.answered(kind, object));
  for (auto const& object : came.workloads)
    for (std::string& key : concerned(queues_.answered(object))) c.jobs.push_back(std::move(key));
  return c;
}

}  // namespace edl::controller
