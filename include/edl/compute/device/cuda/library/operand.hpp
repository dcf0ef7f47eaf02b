// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/device/cuda/library/choose.hpp"
#include "edl/compute/device/cuda/library/products.hpp"

namespace edl::cuda_library {

/// A variable as a product reads it, of the type of activations. It is read where it lies, or in a copy in
/// scratch memory that is rounded, or aligned so that kernels read it fast.
class operand {
 public:
  operand() = default;

  /// A matrix whose rows have `row` elements. Where they are not multiples of 16 bytes a copy would be of no
  /// use.
  static operand matrix(cuda_kernels::queue const& q, float const* variable, std::uint16_t const* rounded,
                        std::size_t elements, std::size_t row, room& r);
  /// Always aligned to 16 bytes.
  static operand vector(cuda_kernels::queue const& q, float const* variable, std::uint16_t const* rounded,
                        std::size_t elements, room& r);

  /// Makes the copy, if it is one. `scratch` is the room's memory.
  void const* place(cuda_kernels::queue const& q, std::byte* scratch) const;

  /// Of its address, in bytes.
  std::size_t alignment() const { return copied_ ? 256 : alignment_of(at_); }

 private:
  void const* at_ = nullptr;
  float const* unrounded_ = nullptr;
  std::size_t bytes_ = 0, room_ = 0;
  bool copied_ = false;
};

}  // namespace edl::cuda_library
