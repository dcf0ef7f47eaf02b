// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/app/arguments.hpp"
#include "edl/app/environment.hpp"
#include "edl/app/signals.hpp"
#include "edl/cli/screen.hpp"
#include "edl/cli/status_line.hpp"
#include "edl/core/log.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::app {

/// One role of a job, from its start to its end. Returns the exit code, throws edl::error. `show`: redraws a
/// line with the job's progress; empty: no such line.
int run_master(train::program& p, arguments const& a, process_environment const& s, logger const& log,
               signals const& stop, cli::status_sink const& show);
int run_server(train::program& p, arguments const& a, process_environment const& s, logger const& log,
               signals const& stop);
int run_worker(train::program& p, arguments const& a, process_environment const& s, logger const& log,
               signals const& stop);

/// Starts a master with this process's own command line as a child, which starts the rest, and returns when
/// it exits. `terminal`: receives the lines of all of them, one at a time; null: they write to standard error
/// themselves. The first signal requests the job to save its state and shut down, the second ends it at once.
int run_local_job(arguments const& a, logger const& log, signals const& stop,
                  std::shared_ptr<cli::screen> const& terminal);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/roles.ipp"
#endif
