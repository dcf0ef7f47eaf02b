// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "edl/job/master/command.hpp"

namespace edl::master {

/// The checkpoint being written, the waiting one, and the written versions. One is written at a time. Of
/// waiting ones only the newest and a final one are kept. Thread safety: distinct objects: safe. Shared
/// objects: unsafe.
class checkpoint_queue {
 public:
  /// The next action.
  struct step {
    std::optional<write_checkpoint> start{};  ///< write this one
    std::optional<std::uint64_t> dropped{};   ///< this version is not needed any more
  };

  /// Writes each version once: does nothing for a repeated request, or a written version.
  step add(write_checkpoint const& c);

  /// The one that is being written, if it is of that version.
  std::optional<write_checkpoint> current(std::uint64_t version) const;
  std::optional<write_checkpoint> const& current() const { return current_; }

  /// The current one has ended; `good`: it is complete. Returns the next one to write.
  std::optional<write_checkpoint> ended(bool good);

  /// Drops the waiting one, unless it is final: returns its version.
  std::optional<std::uint64_t> drop_waiting();

  /// Voids the current and the waiting ones: returns their versions, which members may have frozen.
  std::vector<std::uint64_t> clear();

  /// The job continues from this version: later written ones are not in its history.
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
