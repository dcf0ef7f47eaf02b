// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_kernels {

using bfloat = std::uint16_t;

// ---- Numbers: float32 or bfloat16 in memory, float32 in registers ----

/// Neighbours in registers.
template <int N>
struct pack {
  float lane[N];
};

template <std::size_t Bytes>
struct raw_bytes;
template <>
struct raw_bytes<4> {
  using type = unsigned;
};
template <>
struct raw_bytes<8> {
  using type = uint2;
};
template <>
struct raw_bytes<16> {
  using type = uint4;
};

template <class T, int N>
struct array {
  T lane[N];
};

/// Elements that one access of 16 bytes holds.
template <class T>
constexpr int wide = int(16 / sizeof(T));

/// N neighbours of memory; more than one must be aligned to their size.
template <int N, class T>
__device__ __forceinline__ array<T, N> fetch(T const* from) {
  if constexpr (N * sizeof(T) < 4 || N == 1) {
    array<T, N> r;
    for (int k = 0; k < N; ++k) r.lane[k] = from[k];
    return r;
  } else {
    using raw = typename raw_bytes<N * sizeof(T)>::type;
    return std::bit_cast<array<T, N>>(*reinterpret_cast<raw const*>(from));
  }
}

template <int N, class T>
__device__ __forceinline__ void put(T* to, array<T, N> const& v) {
  if constexpr (N * sizeof(T) < 4 || N == 1) {
    for (int k = 0; k < N; ++k) to[k] = v.lane[k];
  } else {
    using raw = typename raw_bytes<N * sizeof(T)>::type;
    *reinterpret_cast<raw*>(to) = std::bit_cast<raw>(v);
  }
}

template <int N>
__device__ __forceinline__ pack<N> widen(array<float, N> const& v) {
  return std::bit_cast<pack<N>>(v);
}

template <int N>
__device__ __forceinline__ pack<N> widen(array<bfloat, N> const& v) {
  pack<N> r;
  if constexpr (N == 1) {
    r.lane[0] = from_bfloat16(v.lane[0]);
  } else {
    auto const words = std::bit_cast<array<unsigned, N / 2>>(v);
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      r.lane[2 * k] = __uint_as_float(words.lane[k] << 16);
      r.lane[2 * k + 1] = __uint_as_float(words.lane[k] & 0xffff'0000u);
    }
  }
  return r;
}

template <int N, class T>
__device__ __forceinline__ pack<N> load(T const* from) {
  return widen(fetch<N>(from));
}

template <int N>
__device__ __forceinline__ void store(float* to, pack<N> const& v) {
  put<N>(to, std::bit_cast<array<float, N>>(v));
}

template <int N>
__device__ __forceinline__ void store(bfloat* to, pack<N> const& v) {
  if constexpr (N == 1) {
    *to = to_bfloat16(v.lane[0]);
  } else {
    array<unsigned, N / 2> words;
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
      __nv_bfloat162 const two = __floats2bfloat162_rn(v.lane[2 * k], v.lane[2 * k + 1]);
      memcpy(&words.lane[k], &two, sizeof(two));
    }
    put<N>(to, std::bit_cast<array<bfloat, N>>(words));
  }
}

template <class T>
__device__ __forceinline__ float load_one(T const* from) {
  return load<1>(from).lane[0];
}

template <class T>
__device__ __forceinline__ void store_one(T* to, float v) {
  store<1>(to, pack<1>{{v}});
}

// ---- Launches ----

/// Puts a kernel into the queue's stream. Throws edl::error in the words of CUDA.
template <class... Parameters, class... Arguments>
void launch(queue const& q, char const* what, void (*kernel)(Parameters...), dim3 grid, unsigned threads,
            Arguments const&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.stream = q.stream;
  cudaError_t const error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  if (error != cudaSuccess)
    throw edl::error(std::string("cuda: the kernel of ") + what +
                     " does not start: " + cudaGetErrorString(error));
}

/// work(T{}) with T as activations are in memory.
template <class Work>
void by_type(bool half, Work&& work) {
  if (half)
    work(bfloat{});
  else
    work(float{});
}

/// Whether accesses of `bytes` may begin at all of them.
template <class... Pointers>
bool aligned(std::size_t bytes, Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % bytes == 0) && ...);
}

/// work.template operator()<T, N>() with T as activations are in memory. N of them are taken at a time where
/// channels, and what begins at the pointers, are aligned for it.
template <class Work, class... Pointers>
void by_channels(queue const& q, std::size_t channels, Work const& work, Pointers... pointers) {
  by_type(q.half, [&]<class T>(T) {
    if (channels % wide<T> == 0 && aligned(16, pointers...))
      work.template operator()<T, wide<T>>();
    else
      work.template operator()<T, 1>();
  });
}

constexpr std::size_t ceil_of(std::size_t n, std::size_t by) { return (n + by - 1) / by; }

// ---- Element by element ----

constexpr unsigned element_threads = 256;

/// Work has `inputs<N>`, `load<N>(i) → inputs<N>` and `finish<N>(i, inputs)` for N elements from the i-th on.
/// Two loads of a thread are under way at a time, before anything is stored.
template <int N, class Work>
__global__ void __launch_bounds__(element_threads) each_element(std::size_t n, Work work) {
  std::size_t const first = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  std::size_t const stride = std::size_t(gridDim.x) * blockDim.x, packs = n / N;
  for (std::size_t i = first; i < packs; i += 2 * stride) {
    std::size_t const j = i + stride;
    auto const a = work.template load<N>(i * N);
    if (j < packs) {
      auto const b = work.template load<N>(j * N);
      work.template finish<N>(i * N, a);
      work.template finish<N>(j * N, b);
    } else {
      work.template finish<N>(i * N, a);
    }
  }
  if constexpr (N > 1)
    for (std::size_t i = packs * N + first; i < n; i += stride)
      work.template finish<1>(i, work.template load<1>(i));
}

/// `N` at a time where `together` says that memory is aligned for it.
template <int N, class Work>
void for_each_element(queue const& q, char const* what, std::size_t n, bool together, Work const& work) {
  if (n == 0) return;
  std::size_t const blocks = ceil_of(together ? ceil_of(n, N) : n, element_threads);
  dim3 const grid(unsigned(std::min(blocks, std::size_t(q.processors) * 8)));
  if (together)
    launch(q, what, each_element<N, Work>, grid, element_threads, n, work);
  else
    launch(q, what, each_element<1, Work>, grid, element_threads, n, work);
}

/// to[i] = f({from[0][i], …, from[K - 1][i]})
template <class In, class Out, int K, class F>
struct map_elements {
  template <int N>
  struct inputs {
    pack<N> operand[K];
  };

  In const* from[K];
  Out* to;
  F f;

  template <int N>
  __device__ __forceinline__ inputs<N> load(std::size_t i) const {
    inputs<N> in;
#pragma unroll
    for (int k = 0; k < K; ++k) in.operand[k] = cuda_kernels::load<N>(from[k] + i);
    return in;
  }

  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, inputs<N> const& in) const {
    pack<N> out;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      float x[K];
#pragma unroll
      for (int k = 0; k < K; ++k) x[k] = in.operand[k].lane[e];
      out.lane[e] = f(x);
    }
    store<N>(to + i, out);
  }
};

template <class In, class Out, int K, class F>
void map(queue const& q, char const* what, std::size_t n, In const* const (&from)[K], Out* to, F const& f) {
  constexpr int N = std::min(wide<In>, wide<Out>);
  map_elements<In, Out, K, F> work{{}, to, f};
  bool together = aligned(N * sizeof(Out), to);
  for (int k = 0; k < K; ++k) {
    work.from[k] = from[k];
    together = together && aligned(N * sizeof(In), from[k]);
  }
  for_each_element<N>(q, what, n, together, work);
}

}  // namespace edl::cuda_kernels
