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

/// What came of the actions for a job.
struct execution {
  std::vector<std::pair<object_kind, nlohmann::json>> seen{};  ///< objects as the answers show them
  std::vector<nlohmann::json> workloads{};                     ///< the same of Workloads
  bool status_written = false;
  bool job_gone = false;
  bool look_again = false;  ///< something had changed meanwhile: the rest was left undone

  /// What the API server refuses to make, why, and when to ask again; empty: nothing.
  std::string stalled{}, why{};
  double retry_after = 0;  ///< seconds
};

struct execute_options {
  std::string pod_groups{};    ///< version of PodGroup to be used; empty: jobs have none
  bool restart_rules = true;   ///< the server knows rules by which a container is restarted (1.35)
  double refused_retry = 180;  ///< seconds until what the server refuses as not valid is asked again
  double short_retry = 30;     ///< what may be mended by others: rights, quotas, accounts
};

/// Carries out what was decided for a job, in order, until something stands in the way. Objects that are
/// there already are taken for what they are. Throws what is worth being repeated later: unreachable,
/// untrusted, api_error of a server that is overloaded or fails; and deposed. `options.restart_rules` is
/// cleared where the server turns out not to know them.
execution execute(api_requests& api, training_job const& job, decision const& what, execute_options& options);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/execute.ipp"
#endif
