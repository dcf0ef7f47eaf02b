// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/job/train/setup/program.hpp"

namespace edl::app {

/// Runs the command line according to the environment. The process is one role of a job (EDL_ROLE), or the
/// user's command, which trains itself or starts a job's processes on this machine. Returns the exit code;
/// prints an error as one line on standard error.
int run(train::program& p, int argc, char** argv);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/command.ipp"
#endif
