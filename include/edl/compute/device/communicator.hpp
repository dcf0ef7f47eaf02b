// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace edl {

/// What decides whether GPUs can sum among themselves: no two members of a sum have the same GPU, and all
/// have the same NCCL.
struct gpu_identity {
  std::array<std::byte, 16> uuid{};
  int nccl = 0;         ///< its version, 22803 for 2.28.3; 0: there is none that will do
  std::string lacking;  ///< then, why
};

/// Where the GPUs of a sum meet: drawn by one member, who gives it to the others.
using gpu_meeting = std::array<std::byte, 128>;

/// GPUs of several processes that sum what is in their memory (`accelerator::join`). They sum by NCCL, in a
/// stream of its own beside the one of the GPU's other work. Every member calls the same sums with as many
/// numbers in the same order.
///
/// Nothing here waits for others: `ready` and `done` are asked until they say yes, and who hears elsewhere
/// that a member is lost stops asking. The end of this object ends what is under way, at once, on this member
/// alone; the memory then holds anything. Errors are edl::error with the words of NCCL or CUDA; after one the
/// object is of no use. Thread safety: one thread.
class communicator {
 public:
  virtual ~communicator() = default;

  /// Whether all members have joined, and the last sum that was called for is on its way.
  virtual bool ready() = 0;

  /// values := the sum over all members of values · weight, once the GPU's work is past `mark`
  /// (`accelerator::mark`). A weight of 0 stands for zeros, whatever the values are. To be called when
  /// `ready`.
  virtual void sum(std::span<float> values, float weight, int mark) = 0;

  /// Whether all sums that were called for are there.
  virtual bool done() = 0;
};

}  // namespace edl
