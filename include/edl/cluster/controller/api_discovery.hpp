// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/log.hpp"

namespace edl::controller {

/// The API server's version; nothing: it could not be asked, or tells none. One that is too old for
/// TrainingJobs is logged.
std::optional<kubernetes::server_version> server_of(kubernetes::client& api, logger const& log);

/// Whether the cluster serves Kueue's Workloads; nothing: the API server could not be asked, which is logged.
std::optional<bool> serves_kueue(kubernetes::client& api, logger const& log);

/// The version of PodGroup that the cluster serves; empty: none, which is logged.
std::string pod_group_version(kubernetes::client& api, logger const& log);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/api_discovery.ipp"
#endif
