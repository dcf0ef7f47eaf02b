// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "edl/job/master/command.hpp"

namespace edl::master {

/// Which checkpoint is being written, which one waits, and which versions are written. One is written at a
/// time. Of those that wait, the newest is worth the most and the others are dropped, but for a final one.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class checkpoint_queue {
 public:
  /// What is to be done next.
  struct step {
    std::optional<write_checkpoint> start{};  ///< this one is to be written
    std::optional<std::uint64_t> dropped{};   ///< this version is not needed any more
  };

  /// A version is written once: what is asked for again, or is written already, is nothing to do.
  step add(write_checkpoint const& c);

  /// The one that is being written, if it is of that version.
  std::optional<write_checkpoint> current(std::uint64_t version) const;
  std::optional<write_checkpoint> const& current() const { return current_; }

  /// The current one has ended; `good`: it is complete. Tells which one is to be written next.
  std::optional<write_checkpoint> ended(bool good);

  /// The current one and what waits are void: versions of these that members may have frozen.
  std::vector<std::uint64_t> clear();

  /// The job goes on from this version: a later one that was written is none of its past.
  void go_back_to(std::uint64_t version);

  std::optional<std::uint64_t> newest() const { return newest_; }  ///< that was written
  std::optional<std::uint64_t> final_version() const {
    return final_;
  }  ///< of the final checkpoint, once written

 private:
  std::optional<write_checkpoint> current_, next_;
  std::optional<std::uint64_t> newest_, final_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/checkpoint_queue.ipp"
#endif
