// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "submit/training_job.hpp"

namespace edl::tool {

/// `edl submit`.
int submit_training_job(words const& line);
std::vector<flag> submit_training_job_flags();

/// `edl train -f FILE` where the file holds objects: of edl, or of PaddlePaddle, which become plain jobs
/// where the cluster knows no TrainingJobs.
int submit_objects(std::vector<nlohmann::json> const& documents, command_line const& given);

}  // namespace edl::tool
