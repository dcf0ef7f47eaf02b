// SPDX-License-Identifier: Apache-2.0
// What source of device code sees, for a compiler of plain C++. Every thread of a block is a fiber of one
// thread, so that barriers and shuffles work, and shared memory is static.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/// Device code reads arrays of numbers as these, wherever they are aligned.
struct [[gnu::may_alias]] alignas(8) float2 {
  float x, y;
};
struct [[gnu::may_alias]] alignas(16) float4 {
  float x, y, z, w;
};
struct [[gnu::may_alias]] alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
struct [[gnu::may_alias]] alignas(4) ushort2 {
  unsigned short x, y;
};
struct [[gnu::may_alias]] alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct uint3 {
  unsigned x, y, z;
};
struct [[gnu::may_alias]] alignas(8) uint2 {
  unsigned x, y;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};

constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace edl::cuda_double {

cudaError_t launch(cudaLaunchConfig_t const& config, std::function<void()> thread);
void wait_for_block();
void wait_for_warp(unsigned lanes);

/// `value` of lane `from` of the warp, which every one of `lanes` asks for.
std::uint64_t exchange(unsigned lanes, std::uint64_t value, unsigned from, bool own);

/// Lanes of `lanes` whose value is the same.
unsigned match(unsigned lanes, std::uint64_t value);

/// The lane within groups of `width` that `to` computes from the own one; the own where it is outside of the
/// group.
template <class T, class To>
T shuffle(unsigned lanes, T value, int width, To&& to) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t wide = 0;
  std::memcpy(&wide, &value, sizeof(T));
  unsigned const thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int const lane = int(thread % 32), first = lane / width * width, other = to(lane - first);
  bool const outside = other < 0 || other >= width;
  wide = exchange(lanes, wide, unsigned(outside ? lane : first + other), outside);
  std::memcpy(&value, &wide, sizeof(T));
  return value;
}

}  // namespace edl::cuda_double

inline void __syncthreads() { edl::cuda_double::wait_for_block(); }
inline void __syncwarp(unsigned lanes = 0xffff'ffff) { edl::cuda_double::wait_for_warp(lanes); }

template <class T>
T __shfl_sync(unsigned lanes, T value, int from, int width = 32) {
  return edl::cuda_double::shuffle(lanes, value, width, [&](int) { return from & (width - 1); });
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int bits, int width = 32) {
  return edl::cuda_double::shuffle(lanes, value, width, [&](int lane) { return lane ^ bits; });
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, unsigned by, int width = 32) {
  return edl::cuda_double::shuffle(lanes, value, width, [&](int lane) { return lane + int(by); });
}
template <class T>
T __shfl_up_sync(unsigned lanes, T value, unsigned by, int width = 32) {
  return edl::cuda_double::shuffle(lanes, value, width, [&](int lane) { return lane - int(by); });
}

template <class T>
unsigned __match_any_sync(unsigned lanes, T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t wide = 0;
  std::memcpy(&wide, &value, sizeof(T));
  return edl::cuda_double::match(lanes, wide);
}

inline unsigned __ballot_sync(unsigned lanes, bool yes) {
  unsigned const same = edl::cuda_double::match(lanes, yes);
  return yes ? same : lanes & ~same;
}

template <class T>
T __ldg(T const* from) {
  return *from;
}

inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) * b) >> 32); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(unsigned x) { return std::countl_zero(x); }
using std::max;
using std::min;

/// The arguments are taken by value, as the kernel's parameters, when it is launched.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return [&](Parameters... converted) {
    return edl::cuda_double::launch(*config, [=] { kernel(converted...); });
  }(static_cast<Arguments&&>(arguments)...);
}

template <class Function>
cudaError_t cudaFuncSetAttribute(Function*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t size) {
  void* untyped = nullptr;
  cudaError_t const error = cudaMalloc(&untyped, size);
  *memory = static_cast<T*>(untyped);
  return error;
}
