// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "edl/job/config/job.hpp"
#include "edl/job/train/observe/event_file.hpp"
#include "edl/job/train/setup/program.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/worker/trainer.hpp"

namespace edl::train {

/// The first evaluation records of a job, or else training records, as the network sees them, by tag:
/// --tensorboard_pictures. Throws usage_error for a network that takes no pictures, and what reading and
/// feeding throw.
std::vector<std::pair<std::string, event_picture>> sample_pictures(job const& j, program const& p,
                                                                   records const& from,
                                                                   worker::trainer const& by);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/sample_pictures.ipp"
#endif
