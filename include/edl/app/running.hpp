// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/app/arguments.hpp"
#include "edl/net/address.hpp"

namespace edl::app {

/// How a job of this machine is reached by its user. It is a file that only that user may read, and exists as
/// long as the job runs. Thread safety: distinct objects: safe.
class running_job {
 public:
  /// Announces a job. `journal`: of its master, which says where it listens. Throws error when it cannot be
  /// written.
  running_job(std::string const& name, std::string const& token, std::string const& journal);
  running_job(running_job const&) = delete;
  running_job& operator=(running_job const&) = delete;
  ~running_job();

  struct contact {
    std::string token;
    std::vector<net::address> master;
  };

  /// Throws error when no such job runs.
  static contact find(std::string const& name);

 private:
  std::string path_, content_;
};

/// Tells a running job's master how many processes there are to be. The job is that of this machine with this
/// name, or, where MASTER_ADDR and EDL_JOB_TOKEN are set, the one there. Throws error when it cannot be
/// reached or refuses.
void scale(scaling const& wanted);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/running.ipp"
#endif
