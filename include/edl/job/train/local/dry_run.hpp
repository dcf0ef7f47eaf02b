// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/job/config/job.hpp"

namespace edl::train {

/// A directory for the output of --dry_run, removed with this object and everything in it. Thread safety:
/// distinct objects: safe.
class dry_run_directory {
 public:
  /// Creates it below the directory for temporary files. Throws error if it cannot.
  dry_run_directory();
  dry_run_directory(dry_run_directory const&) = delete;
  dry_run_directory& operator=(dry_run_directory const&) = delete;
  ~dry_run_directory();

  std::string const& path() const { return path_; }

 private:
  std::string path_;
};

/// Changes a job to try everything once: a minibatch for each worker, an evaluation over one, a checkpoint
/// and an exported model below `directory`. Every process of the job must do the same.
void make_dry(job& j, std::string const& directory);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local/dry_run.ipp"
#endif
