// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edl/app/flags.hpp"
#include "edl/app/program.hpp"
#include "edl/app/signals.hpp"
#include "edl/core/log.hpp"

namespace edl::app {

/// What the environment says about this process. Names are those of the platform's pods.
struct surroundings {
  std::string role;      ///< EDL_ROLE: master, ps, worker; empty: the user's own process
  std::string job_name;  ///< EDL_JOB_NAME
  std::string token;     ///< EDL_JOB_TOKEN, the job's secret
  std::string master;    ///< MASTER_ADDR: "host:port", or addresses separated by commas
  std::string host;      ///< MY_POD_IP: where others reach this process
  std::string platform;  ///< EDL_PLATFORM: "process" when the master starts the others on this machine
  std::uint32_t id = 0;  ///< WORKER_ID or PS_ID
};

/// Throws usage_error when a variable that the role needs is missing or wrong, naming it.
surroundings read_environment();

/// One role of a job, from its start to its end. Returns the exit code, throws edl::error.
int run_master(program& p, arguments const& a, surroundings const& s, logger const& log, signals const& stop);
int run_server(program& p, arguments const& a, surroundings const& s, logger const& log, signals const& stop);
int run_worker(program& p, arguments const& a, surroundings const& s, logger const& log, signals const& stop);

/// Starts a master of this process's own command line as a child, which starts the rest, and ends with it.
int run_cluster(arguments const& a, logger const& log, signals const& stop);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/roles.ipp"
#endif
