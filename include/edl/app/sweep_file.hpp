// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/app/sweep_plan.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/checkpoint/directory_lock.hpp"

namespace edl::app {

/// `sweep.json`, the list of a sweep's trials, in a directory or in a bucket, and the lock that keeps a
/// second sweep out of there. Thread safety: unsafe.
class sweep_file {
 public:
  struct options {
    std::string output;                ///< the directory, or `s3://BUCKET/PREFIX`
    std::string identity;              ///< the options to which results apply
    std::string job;                   ///< the holder's name in errors of others
    bucket::cache_options cache = {};  ///< of a bucket
  };

  /// Makes the directory and locks it. Throws usage_error if it cannot be made, checkpoint::directory_taken
  /// if another command is using it, and error.
  explicit sweep_file(options o);

  bucket::place const& place() const { return place_; }

  /// The planned trials with the results of an earlier run of the same sweep; nothing: there was none. Throws
  /// usage_error for the list of another sweep, error for one that cannot be read, or is invalid.
  std::optional<std::vector<trial>> read(std::vector<trial> const& planned, std::uint64_t most_steps);

  /// Replaces the list. Throws error if it is another's by now: in a bucket the store decides.
  void write(std::vector<trial> const& all);

  /// Throws error if another command has the directory by now. Call it before a change there.
  void check() const { lock_.check(); }

  /// Why the directory is another command's by now; empty: it is not, as far as the last look tells.
  std::optional<std::string> lost() const { return lock_.lost(); }

 private:
  options options_;
  bucket::place place_;
  checkpoint::directory_lock lock_;
  std::string tag_;  // of the object that was read or written last
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/sweep_file.ipp"
#endif
