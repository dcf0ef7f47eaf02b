// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/app/arguments.hpp"
#include "edl/app/job_directory.hpp"
#include "edl/base/net/address.hpp"

namespace edl::app {

/// Where a job's master keeps its journal, which says where it listens.
inline std::string journal_in(job_directory const& of) { return of.path() + "/journal.json"; }

/// Lets this user's `scale` find a job, as long as its directory is there. `checkpoints`: its directory, by
/// which a person knows the job from another of its name. Throws error when it cannot be written.
void announce(job_directory const& in, std::string const& name, std::string const& token,
              std::string const& checkpoints);

/// How a running job is reached.
struct job_contact {
  std::string name, token;
  std::vector<net::address> master;
};

/// The job of this user and machine that is called `name`, or whose command is process `name`. Throws error
/// when none runs, or more than one.
job_contact find_job(std::string const& name);

/// Tells a running job's master how many processes there are to be. The job is that of this machine with this
/// name, or, where MASTER_ADDR and EDL_JOB_TOKEN are set, the one there. Throws error when it cannot be
/// reached or refuses.
void scale(scaling const& wanted);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/running.ipp"
#endif
