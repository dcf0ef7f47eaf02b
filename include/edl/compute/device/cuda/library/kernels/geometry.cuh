// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

/// Where elements of samples and of a convolution's kernel lie.
namespace edl::cuda_kernels {

/// A weight as products read it where activations are of the type T.
template <class T>
__device__ float factor(float w) {
  if constexpr (std::is_same_v<T, bfloat>) return from_bfloat16(to_bfloat16(w));
  return w;
}

/// An element of samples.
__device__ inline std::size_t at(shape s, std::size_t sample, int row, int column, int channel) {
  return ((sample * std::size_t(s.height) + std::size_t(row)) * std::size_t(s.width) + std::size_t(column)) *
             std::size_t(s.channels) +
         std::size_t(channel);
}

/// An element of a kernel {height, width, in / groups, out}.
__device__ inline std::size_t at(conv_geometry const& g, int row, int column, int in, int out) {
  std::size_t const own = std::size_t(g.in.channels / g.groups);
  return ((std::size_t(row) * std::size_t(g.kernel.width) + std::size_t(column)) * own + std::size_t(in)) *
             std::size_t(g.out.channels) +
         std::size_t(out);
}

}  // namespace edl::cuda_kernels
