// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

/// One row after the other by few threads each. They are `width` neighbours, a power of two of at most 32, so
/// a group never leaves its warp.
namespace edl::cuda_kernels {

struct row_group {
  unsigned width, lane, index;  ///< `index` of the group in its block

  __device__ explicit row_group(unsigned w) : width(w), lane(threadIdx.x % w), index(threadIdx.x / w) {}

  __device__ unsigned groups() const { return blockDim.x / width; }

  /// Of the block's first group; so that all its threads do the same number of rounds.
  __device__ std::size_t first_row() const { return std::size_t(blockIdx.x) * groups(); }
  __device__ std::size_t stride() const { return std::size_t(gridDim.x) * groups(); }

  /// What `f` makes of the group's values, the same in all its threads; all of a warp call it.
  template <class V, class F>
  __device__ __forceinline__ V join(V value, F&& f) const {
    for (unsigned bit = width / 2; bit > 0; bit /= 2)
      value = f(value, __shfl_xor_sync(0xffff'ffffu, value, int(bit)));
    return value;
  }
};

/// Threads for a row of `n`.
inline unsigned row_width(std::size_t n) {
  return unsigned(std::bit_ceil(std::clamp<std::size_t>(n, 1, 32)));
}

/// The greater, or the one that is no number.
__device__ __forceinline__ float greater_or_nan(float a, float b) { return a > b || a != a ? a : b; }

}  // namespace edl::cuda_kernels
