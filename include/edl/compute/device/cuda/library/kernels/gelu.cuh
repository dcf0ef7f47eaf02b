// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cmath>

/// The Gaussian error linear unit, x · Φ(x), as kernels compute it.
namespace edl::cuda_kernels {

__device__ __forceinline__ float below(float x) { return 0.5f * erfcf(-0.707106781f * x); }

__device__ __forceinline__ float gelu_of(float x) { return x * below(x); }

/// Its derivative.
__device__ __forceinline__ float gelu_slope(float x) {
  return below(x) + x * 0.398942280f * expf(-0.5f * x * x);
}

}  // namespace edl::cuda_kernels
