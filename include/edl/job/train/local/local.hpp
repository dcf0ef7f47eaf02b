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

/// The connection of a job in one process to its user.
struct local_context {
  std::function<bool()> interrupted;           ///< whether it must end; called between minibatches
  cli::status_sink show = {};                  ///< redraws a line (`progress_view`); empty: none
  std::vector<std::string> command = {};       ///< the user's, word by word, to print the next ones
  std::string token = {};                      ///< of --dashboard; empty: drawn if needed
  master::final_retries::limits storage = {};  ///< for failing storage at the end of the job
};

/// Runs the whole job in this process (`--distribution_strategy=Local`): the master's decisions, one store
/// and one worker, connected by calls instead of sockets. On interruption it finishes the current minibatch,
/// writes a checkpoint if there is a directory, and returns a code other than 0. Returns the exit code;
/// throws edl::error if the job cannot be done.
int run_local(program& p, job const& j, logger const& log, local_context const& around);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local/local.ipp"
#endif
