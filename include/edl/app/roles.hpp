// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/app/arguments.hpp"
#include "edl/app/environment.hpp"
#include "edl/app/signals.hpp"
#include "edl/core/log.hpp"
#include "edl/train/program.hpp"

namespace edl::app {

/// One role of a job, from its start to its end. Returns the exit code, throws edl::error.
int run_master(train::program& p, arguments const& a, surroundings const& s, logger const& log,
               signals const& stop);
int run_server(train::program& p, arguments const& a, surroundings const& s, logger const& log,
               signals const& stop);
int run_worker(train::program& p, arguments const& a, surroundings const& s, logger const& log,
               signals const& stop);

/// Starts a master of this process's own command line as a child, which starts the rest, and ends with it.
int run_cluster(arguments const& a, logger const& log, signals const& stop);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/roles.ipp"
#endif
