// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "edl/cluster/controller/api_requests.hpp"
#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/inventory.hpp"

namespace edl::controller {

/// The result of a job's actions.
struct execution {
  std::vector<std::pair<object_kind, nlohmann::json>> seen{};  ///< objects from the server's replies
  std::vector<nlohmann::json> workloads{};                     ///< Workloads from the server's replies
  bool status_written = false;
  bool job_gone = false;
  bool look_again = false;  ///< something changed concurrently: the remaining actions were skipped

  /// What the API server refuses to create, and why; empty: nothing.
  std::string stalled{}, why{};
  double retry_after = 0;  ///< seconds until the retry
};

struct execute_options {
  std::string pod_groups{};    ///< version of PodGroup to use; empty: jobs have none
  bool restart_rules = true;   ///< whether the server supports container restart rules (1.35)
  double refused_retry = 180;  ///< seconds until a request that the server rejected as invalid is retried
  double short_retry = 30;     ///< the same where others may mend it: permissions, quotas
};

/// Carries out the actions for a job, in order, until one fails. Adopts objects of the job that exist
/// already. Throws errors that are worth a retry: unreachable, untrusted, api_error of a server that is
/// overloaded or fails; and deposed. Clears `options.restart_rules` if the server turns out not to support
/// them.
execution execute(api_requests& api, kubernetes::training_job const& job, decision const& what,
                  execute_options& options);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/execute.ipp"
#endif
