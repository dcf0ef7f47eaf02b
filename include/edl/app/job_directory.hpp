// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::app {

/// A directory for one running job of this machine: its sockets and its journal. Only this user can access it
/// (mode 0700). It is below $XDG_RUNTIME_DIR or the directory for temporary files, and is removed with this
/// object. The directory of a killed process is removed when the next one is created. Thread safety: distinct
/// objects: safe.
class job_directory {
 public:
  /// Throws error if it cannot be created.
  job_directory();
  job_directory(job_directory const&) = delete;
  job_directory& operator=(job_directory const&) = delete;
  ~job_directory();

  std::string const& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // a file there, locked while this process lives
};

/// The directories of this user's running jobs, in all places where this process would create one.
std::vector<std::string> running_job_directories();

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_directory.ipp"
#endif
