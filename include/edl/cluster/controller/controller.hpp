// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/controller/election.hpp"
#include "edl/cluster/controller/reconcile.hpp"
#include "edl/cluster/kubernetes/access.hpp"
#include "edl/core/log.hpp"
#include "edl/core/metric_registry.hpp"

namespace edl::controller {

struct controller_options {
  std::string space{};     ///< of the TrainingJobs; empty: all. Nodes and pods are looked at everywhere.
  std::string identity{};  ///< unique among all controllers that there ever were
  std::string lease = "edl-controller", lease_space = "edl-system";
  election::options times{};
  plan_options planning{.move = false};
  reconcile_options reconciling{};
  std::chrono::milliseconds plan_interval{50};       ///< between two plans, at least
  std::chrono::milliseconds report_interval{5'000};  ///< the same where only reports of jobs are new
  std::size_t workers = 8;                           ///< jobs that are worked on at once
  double requests_per_s = 300,
         burst = 100;  ///< of all requests that change something, and reads of single objects
};

/// Keeps TrainingJobs: watches, plans, and carries out what follows, while it holds the lease. Several may
/// run; one acts. What it knows can be lost at any moment.
///
/// Thread safety: safe.
class controller {
 public:
  /// Starts. Throws usage_error when the times of the election do not fit together.
  controller(kubernetes::access via, controller_options o, logger log);
  controller(controller const&) = delete;

  /// Stops acting, gives the lease back and ends.
  ~controller();

  bool leads() const;
  /// It has seen everything once.
  bool ready() const;
  /// Its threads make progress; `why` says which does not.
  bool healthy(std::string& why) const;
  /// With the numbers of this moment.
  std::string metrics_text() const;

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/controller.ipp"
#endif
