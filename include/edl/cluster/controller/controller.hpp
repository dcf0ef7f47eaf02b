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
  std::string space{};  ///< namespace of the TrainingJobs; empty: all. Nodes and pods are watched everywhere.
  std::string identity{};  ///< unique among all controllers, past ones included
  std::string lease = "edl-controller", lease_space = "edl-system";
  election::options times{};
  autoscaler::plan_options planning{.move = false};
  reconcile_options reconciling{};
  std::chrono::milliseconds plan_interval{50};       ///< minimum between two plans
  std::chrono::milliseconds report_interval{5'000};  ///< the same if only jobs' reports have changed
  std::string prices{};     ///< a file as `read_prices` reads it, read again when it changes; empty: none
  std::size_t workers = 8;  ///< threads that reconcile jobs
  double requests_per_s = 300,
         burst = 100;  ///< for writes and for reads of single objects
};

/// Runs TrainingJobs: watches the API server, makes plans and carries them out while it holds the lease.
/// Several controllers may run; only the leader acts. All state in memory can be rebuilt from the API server.
///
/// Thread safety: safe.
class controller {
 public:
  /// Starts the threads. Throws usage_error when the election's times are inconsistent.
  controller(kubernetes::access via, controller_options o, logger log);
  controller(controller const&) = delete;

  /// Stops acting, releases the lease and joins the threads.
  ~controller();

  bool leads() const;
  /// Whether every list has been read once.
  bool ready() const;
  /// Whether all threads make progress; otherwise `why` names the one that does not.
  bool healthy(std::string& why) const;
  /// The current metrics, as OpenMetrics text.
  std::string metrics_text() const;

 private:
  struct implementation;
  std::unique_ptr<implementation> self_;
};

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/controller.ipp"
#endif
