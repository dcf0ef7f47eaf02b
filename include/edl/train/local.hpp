// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "edl/core/log.hpp"
#include "edl/job/job.hpp"
#include "edl/train/program.hpp"

namespace edl::train {

/// Runs the whole job in this process (`--distribution_strategy=Local`): the master's decisions, one store
/// and one worker, joined by calls instead of sockets. When `interrupted` becomes true the minibatch at hand
/// is finished, and a checkpoint is written where there is a place for one. The code is then not 0. Returns
/// the exit code; throws edl::error when the job cannot be done.
int run_local(program& p, job const& j, logger const& log, std::function<bool()> const& interrupted);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/train/local.ipp"
#endif
