// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "world/history.hpp"

namespace simulation {

/// One history of a cluster: one to three TrainingJobs that share it, two controllers, and what the seed
/// draws of faults of processes, network, storage and API server, and of wishes of users. Once in an OS
/// process. `definition`: of TrainingJobs.
history run_cluster_history(std::uint64_t seed, nlohmann::json const& definition,
                            std::string const& trace = {});

}  // namespace simulation
