// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace edl {

/// The number of a generation (of a job's servers, or of a world of workers) has two halves: the epoch of the
/// master that began it, and a count. A master that takes a checkpoint directory claims an epoch above all
/// that were there (`checkpoint::directory_lock::claim`). So two masters never use one number for two states,
/// and every number of a later master is greater than all of those before it. Epoch 0: no directory.
inline constexpr std::uint64_t most_epoch = (std::uint64_t{1} << 31) - 1;

constexpr std::uint64_t epoch_of(std::uint64_t generation) { return generation >> 32; }

/// What people are shown of it.
constexpr std::uint64_t count_of(std::uint64_t generation) { return generation & 0xffffffffu; }

/// The generation of that count in an epoch, or of its own epoch, where that is the later one.
constexpr std::uint64_t in_epoch(std::uint64_t epoch, std::uint64_t generation) {
  return std::max(generation, epoch << 32 | count_of(generation));
}

/// Where a state of the model stands in its job: the generation that it was of, and the version. Of two
/// checkpoints the greater one is the job's newest, whatever their versions are. 0, 0: nothing was trained.
struct position {
  std::uint64_t generation = 0, version = 0;
  friend auto operator<=>(position const&, position const&) = default;

  /// Whether a member's copy of the model lacks something that `checkpoint` has: it is of an earlier epoch,
  /// or of the same history and less far. Versions within an epoch are compared first, because a checkpoint
  /// may have been written by a later generation than the one that made its version.
  bool behind(position const& checkpoint) const {
    return epoch_of(generation) < epoch_of(checkpoint.generation) ||
           (generation <= checkpoint.generation && version < checkpoint.version);
  }
};

}  // namespace edl
