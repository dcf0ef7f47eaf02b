// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::app {

/// A directory for one running job of this machine: its sockets and its journal. It is this user's alone
/// (mode 0700), below $XDG_RUNTIME_DIR or the directory for temporary files, and goes with this object. That
/// of a process that was killed goes when the next is made. Thread safety: distinct objects: safe.
class job_directory {
 public:
  /// Throws error when it cannot be made.
  job_directory();
  job_directory(job_directory const&) = delete;
  job_directory& operator=(job_directory const&) = delete;
  ~job_directory();

  std::string const& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // a file there, held as long as this process lives
};

/// The directories of this user's jobs that run, wherever this process would make one.
std::vector<std::string> running_job_directories();

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/job_directory.ipp"
#endif
