// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace edl {

/// Decides whether GPUs can sum among themselves: no two members may have the same GPU, and all need the same
/// version of NCCL.
struct gpu_identity {
  std::array<std::byte, 16> uuid{};
  int nccl = 0;         ///< its version, 22803 for 2.28.3; 0: no usable one
  std::string lacking;  ///< why there is none
};

/// The meeting point of the GPUs of a sum. One member draws it and sends it to the others.
using gpu_meeting = std::array<std::byte, 128>;

/// GPUs of several processes that sum numbers in their memory (`accelerator::join`). They sum by NCCL, in a
/// stream beside the one of the GPU's other work. Every member calls the same sums, of as many numbers, in
/// the same order.
///
/// Nothing here blocks on other members: the caller polls `ready` and `done`, and stops polling when it
/// learns that a member is lost. Destroying the object aborts the sums that are still running, at once and on
/// this member alone; the memory then holds unspecified values. Errors are edl::error with the message of
/// NCCL or CUDA; after an error the object is unusable. Thread safety: one thread.
class communicator {
 public:
  virtual ~communicator() = default;

  /// Whether all members have joined, and the last requested sum is in the stream.
  virtual bool ready() = 0;

  /// values := the sum over all members of values · weight, once the GPU's work has passed `mark`
  /// (`accelerator::mark`). A weight of 0 stands for zeros, whatever the values are. Call it only when
  /// `ready`.
  virtual void sum(std::span<float> values, float weight, int mark) = 0;

  /// Whether all requested sums are complete.
  virtual bool done() = 0;
};

}  // namespace edl
