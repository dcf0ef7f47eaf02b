// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/app/arguments.hpp"
#include "edl/app/job_directory.hpp"
#include "edl/base/net/address.hpp"

namespace edl::app {

/// The path of the master's journal, which contains the address that it listens on.
inline std::string journal_in(job_directory const& of) { return of.path() + "/journal.json"; }

/// Lets this user's `scale` find a job while its directory exists. `checkpoints`: its checkpoint directory,
/// which distinguishes it from another job with its name. Throws error if the file cannot be written.
void announce(job_directory const& in, std::string const& name, std::string const& token,
              std::string const& checkpoints);

/// The address and the token of a running job.
struct job_contact {
  std::string name, token;
  std::vector<net::address> master;
};

/// The running job of this user and machine with this name, or whose command has process id `name`. Throws
/// error if none runs, or more than one.
job_contact find_job(std::string const& name);

/// Sets the number of processes of a running job at its master. The job is the one on this machine with this
/// name, or, if MASTER_ADDR and EDL_JOB_TOKEN are set, the one there. Throws error if the master cannot be
/// reached or refuses.
void scale(scaling const& wanted);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/running.ipp"
#endif
