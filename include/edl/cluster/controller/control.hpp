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

/// The controller's state and decisions: the inventory, the plan, and the actions for each job that follow
/// from both. Uses no clock, threads or requests. Thread safety: distinct objects: safe. Shared objects:
/// unsafe.
class control {
 public:
  /// `space`: the namespace of the TrainingJobs to manage; empty: all namespaces.
  explicit control(autoscaler::plan_options planning = {}, reconcile_options reconciling = {},
                   std::string space = {})
      : planning_(planning), reconciling_(reconciling), space_(std::move(space)) {}

  inventory& known() { return known_; }
  inventory const& known() const { return known_; }
  kueue::object_store& queues() { return queues_; }
  kueue::object_store const& queues() const { return queues_; }

  /// The keys of the jobs that a change affects.
  std::vector<std::string> concerned(kueue::object_store::change const& c) const;

  /// A snapshot of the plan's input. `make_plan` may take long; it needs only this snapshot, so the caller
  /// may unlock.
  autoscaler::cluster_view view(double now) const { return known_.view(now, promised_); }
  autoscaler::plan_options const& planning() const { return planning_; }

  /// Stores a plan. Returns the keys of the jobs for which it differs from the previous plan.
  std::vector<std::string> take(autoscaler::plan const& p);

  /// The newest prices of pools. Returns the keys of the jobs that have any.
  std::vector<std::string> take(pool_prices prices);

  /// What to do for the job with this key.
  struct task {
    kubernetes::training_job job;
    edl::controller::decision decision;
    bool plan_anew = false;  ///< the last plan was made without Kueue's current limit for the job
  };
  task decide(std::string const& key, double now);

  /// Stores the result of a task. `change`: what the API server's replies have changed.
  inventory_change learn(task const& of, execution const& came, double now);

 private:
  std::optional<kueue::assessment> ask_kueue_of(job_entry& entry, task& t, double now) const;
  kueue::assessment unknown(kueue::situation const& is) const;
  void release_workloads(std::string const& key, task& t) const;

  inventory known_;
  kueue::object_store queues_;
  autoscaler::plan_options planning_;
  reconcile_options reconciling_;
  std::string space_;
  pool_prices prices_;
  std::unordered_map<std::string, autoscaler::job_plan> plans_;        ///< by uid
  std::unordered_map<std::string, autoscaler::reservation> promised_;  ///< by pods
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/control.ipp"
#endif
