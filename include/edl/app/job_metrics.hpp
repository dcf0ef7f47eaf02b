// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "edl/app/environment.hpp"
#include "edl/base/http/server.hpp"
#include "edl/core/metric_registry.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/ps/server.hpp"
#include "edl/job/worker/session.hpp"

namespace edl::app {

struct job_metric {
  std::string_view name;
  metric_type type;
  std::string_view roles;  ///< "all", or the roles that export it
  std::string_view help;
};

/// All metrics that the processes of a job export; docs/metrics.md has them as a table.
std::span<job_metric const> job_metrics();

/// Sets the metrics of a role. For a master and a server: call it on the node's thread.
void collect(metric_registry& into, master::coordinator const& of);
void collect(metric_registry& into, ps::server const& of);
void collect(metric_registry& into, worker::progress const& of);

/// Sets the metrics of every process: those of the process itself, and of its connections.
void collect_process(metric_registry& into);

/// The route GET /metrics, with the metrics that `collect` sets, for a process of a job.
http::route metrics_route(process_environment const& s, std::function<void(metric_registry&)> collect);

/// Serves it at --metrics_port, and logs the address; null: without that flag. Calls `collect` on the node's
/// thread. Throws `edl::error` if the port is taken.
std::unique_ptr<http::server> serve_metrics(net::node& on, job const& j, process_environment const& s,
                                            std::function<void(metric_registry&)> collect, logger const& log);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_metrics.ipp"
#endif
