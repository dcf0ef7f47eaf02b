// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/controller/execute.hpp"
#include "edl/cluster/controller/inventory.hpp"
#include "edl/cluster/controller/reconcile.hpp"
#include "edl/cluster/kueue/kueue_store.hpp"

namespace edl::controller {

/// What a controller knows and decides: the inventory, the plan, and what follows from both for each job.
/// Without clock, threads and requests. Thread safety: distinct objects: safe. Shared objects: unsafe.
class control {
 public:
  /// `space`: only TrainingJobs of this namespace are known; empty: all.
  explicit control(plan_options planning = {}, reconcile_options reconciling = {}, std::string space = {})
      : planning_(planning), reconciling_(reconciling), space_(std::move(space)) {}

  inventory& known() { return known_; }
  inventory const& known() const { return known_; }
  kueue::object_store& queues() { return queues_; }
  kueue::object_store const& queues() const { return queues_; }

  /// The keys of the jobs that a change concerns.
  std::vector<std::string> concerned(kueue::object_store::change const& c) const;

  /// The plan's input at this moment. `make_plan` may take a while: it needs nothing else of this object.
  cluster_view view(double now) const { return known_.view(now, promised_); }
  plan_options const& planning() const { return planning_; }

  /// Takes a plan over. Returns the keys of jobs to which it says something new.
  std::vector<std::string> take(plan const& p);

  /// What is to be done for the job of this key.
  struct task {
    training_job job;
    edl::controller::decision decision;
    bool plan_anew = false;  ///< the last plan did not know what Kueue lets the job have now
  };
  task decide(std::string const& key, double now);

  /// Takes over what came of a task. `change`: what the answers have changed.
  inventory_change learn(task const& of, execution const& came, double now);

 private:
  std::optional<kueue::assessment> ask_kueue_of(job_entry& entry, task& t, double now) const;
  kueue::assessment unknown(kueue::situation const& is) const;
  void release_workloads(std::string const& key, task& t) const;

  inventory known_;
  kueue::object_store queues_;
  plan_options planning_;
  reconcile_options reconciling_;
  std::string space_;
  std::unordered_map<std::string, job_plan> plans_;        ///< by uid
  std::unordered_map<std::string, reservation> promised_;  ///< by pods
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/control.ipp"
#endif
