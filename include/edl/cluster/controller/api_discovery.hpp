// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/log.hpp"

namespace edl::controller {

/// Asks the API server for its version and logs a warning if it is too old for TrainingJobs. Returns nothing
/// if the request fails or the reply names no version.
std::optional<kubernetes::server_version> server_of(kubernetes::client& api, logger const& log);

/// Whether the cluster serves Kueue's Workloads. Returns nothing, and logs why, if the request fails.
std::optional<bool> serves_kueue(kubernetes::client& api, logger const& log);

/// The preferred version of PodGroup that the cluster serves. Returns an empty string, and logs that, if it
/// finds none.
std::string pod_group_version(kubernetes::client& api, logger const& log);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/api_discovery.ipp"
#endif
