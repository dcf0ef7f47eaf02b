// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "edl/controller/control.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE std::vector<std::string> control::take(plan const& p) {
  std::unordered_map<std::string, job_plan> next;
  std::vector<std::string> keys;
  for (job_plan const& one : p.jobs) next.emplace(one.uid, one);
  for (auto const& [key, e] : known_.jobs()) {
    auto const now = next.find(e.job.uid);
    if (now == next.end()) continue;
    auto const was = plans_.find(e.job.uid);
    bool const same = was != plans_.end() && was->second.admitted == now->second.admitted &&
                      was->second.workers == now->second.workers &&
                      (now->second.admitted || was->second.reason == now->second.reason);
    bool const done = is_true(e.job.status, condition_type::admitted) == now->second.admitted &&
                      int(e.job.status.workers.desired) == now->second.workers;
    if (!same || (now->second.admitted && !done)) keys.push_back(key);
  }
  plans_ = std::move(next);
  promised_.clear();
  for (reservation const& r : p.reservations) promised_[r.pod] = r;
  return keys;
}

EDL_INLINE control::task control::decide(std::string const& key, double now) {
  std::string const space = key.substr(0, key.find('/')), name = key.substr(space.size() + 1);
  job_entry* const entry = known_.job(key);
  pod_record const* const master = known_.pod(space + "/elasticdl-" + name + "-master");
  // Jobs of other namespaces may be somebody else's.
  bool const orphan = (space_.empty() || space_ == space) && master && master->held &&
                      !master->owner.empty() && !known_.knows(master->owner);
  task t;
  if (!entry) {
    t.job.space = space, t.job.name = name;
    if (orphan) t.what.actions.push_back(release_pod{master->name(), master->uid});
    return t;
  }
  t.job = entry->job;
  job_situation is{.entry = *entry, .master = master, .now = now};
  for (pod_record const* p : known_.pods_of(entry->job.uid))
    if (p != master) is.members.push_back(p);
  if (auto const p = plans_.find(entry->job.uid); p != plans_.end()) is.plan = p->second;
  is.state_of = [this](std::string const& node) { return known_.state_of(node); };
  t.what = reconcile(is, entry->memo, reconciling_);
  if (orphan) t.what.actions.push_back(release_pod{master->name(), master->uid});
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
  for (auto const& [kind, object] : came.seen) c.add(known_.put(kind, object));
  return c;
}

}  // namespace edl::controller
