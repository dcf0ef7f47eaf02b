// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace edl {

/// The number of a generation (of a job's servers, or of a world of workers) has two halves: the epoch of the
/// master that began it, and a count. A master that takes over a checkpoint directory claims an epoch above
/// all earlier ones (`checkpoint::directory_lock::claim`). So two masters never use one number for two
/// states, and every number of a later master is greater than all earlier ones. Epoch 0: no directory.
inline constexpr std::uint64_t most_epoch = (std::uint64_t{1} << 31) - 1;

constexpr std::uint64_t epoch_of(std::uint64_t generation) { return generation >> 32; }

/// The part of the number that people see.
constexpr std::uint64_t count_of(std::uint64_t generation) { return generation & 0xffffffffu; }

/// The generation with this count in `epoch`, or in its own epoch if that is later.
constexpr std::uint64_t in_epoch(std::uint64_t epoch, std::uint64_t generation) {
  return std::max(generation, epoch << 32 | count_of(generation));
}

/// The position of a model's state within its job: its generation and its version. Of two checkpoints the
/// greater one is the job's newest, whatever their versions. 0, 0: nothing has been trained.
struct position {
  std::uint64_t generation = 0, version = 0;
  friend auto operator<=>(position const&, position const&) = default;

  /// Whether a member's copy of the model is behind `checkpoint`: it is of an earlier epoch, or of the same
  /// history with fewer steps. Within an epoch versions are compared first, because a later generation than
  /// the one that made a version may have written its checkpoint.
  bool behind(position const& checkpoint) const {
    return epoch_of(generation) < epoch_of(checkpoint.generation) ||
           (generation <= checkpoint.generation && version < checkpoint.version);
  }
};

}  // namespace edl
