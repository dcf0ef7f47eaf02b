// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "edl/cli/status_line.hpp"
#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/server/final_retries.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::train {

/// What a job in one process has to do with the person who started it.
struct local_context {
  std::function<bool()> interrupted;           ///< whether it is to end; asked between minibatches
  cli::status_sink show = {};                  ///< where a line is redrawn (`progress_view`); empty: nowhere
  std::vector<std::string> command = {};       ///< that was given, word by word, to tell the next ones
  std::string token = {};                      ///< of --dashboard; empty: one is drawn where one is needed
  master::final_retries::limits storage = {};  ///< that fails where the job ends
};

/// Runs the whole job in this process (`--distribution_strategy=Local`): the master's decisions, one store
/// and one worker, joined by calls instead of sockets. When it is interrupted the minibatch at hand is
/// finished, and a checkpoint is written where there is a place for one. The code is then not 0. Returns the
/// exit code; throws edl::error when the job cannot be done.
int run_local(program& p, job const& j, logger const& log, local_context const& around);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local/local.ipp"
#endif
