// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/job/config/job.hpp"

namespace edl::train {

/// A directory for what --dry_run writes. It goes with this object, and all that is in it. Thread safety:
/// distinct objects: safe.
class dry_run_directory {
 public:
  /// Below the directory for temporary files. Throws error when it cannot be made.
  dry_run_directory();
  dry_run_directory(dry_run_directory const&) = delete;
  dry_run_directory& operator=(dry_run_directory const&) = delete;
  ~dry_run_directory();

  std::string const& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes a job one that tries everything once: a minibatch for each worker, an evaluation over one, a
/// checkpoint and an exported model below `directory`. Every process of the job has to do the same.
void make_dry(job& j, std::string const& directory);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/local/dry_run.ipp"
#endif
