// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "cluster/pods.hpp"
#include "common/command_line.hpp"

namespace edl::tool {

/// `edl get jobs`.
int get(words const& line);
std::vector<flag> get_flags();

/// The jobs of a namespace, or of all. `missing`: why TrainingJobs are not among them, or empty.
std::vector<job_summary> jobs_of(cluster& c, bool everywhere, std::string& missing);

nlohmann::json to_json(job_summary const& j);
nlohmann::json to_json_pod(nlohmann::json const& pod);

/// `edl describe`.
int describe_job(words const& line);
std::vector<flag> describe_flags();

}  // namespace edl::tool
