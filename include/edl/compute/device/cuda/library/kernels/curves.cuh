// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cmath>

/// Activations that fall before they rise, as kernels compute them.
namespace edl::cuda_kernels {

__device__ __forceinline__ float below(float x) { return 0.5f * erfcf(-0.707106781f * x); }

/// The Gaussian error linear unit, x · Φ(x).
__device__ __forceinline__ float gelu_of(float x) { return x * below(x); }

/// Its derivative.
__device__ __forceinline__ float gelu_slope(float x) {
  return below(x) + x * 0.398942280f * expf(-0.5f * x * x);
}

/// x · σ(x).
__device__ __forceinline__ float silu_of(float x) { return x / (1 + expf(-x)); }

/// Its derivative.
__device__ __forceinline__ float silu_slope(float x) {
  float const small = expf(-fabsf(x)), all = 1 / (1 + small);
  float const above = x > 0 ? all : small * all, under = x > 0 ? small * all : all;
  return above * (1 + x * under);
}

}  // namespace edl::cuda_kernels
