// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "compute/device/draw.hpp"
#include "device.hpp"
#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/core/bfloat16.hpp"

namespace kernels = edl::cuda_kernels;

/// A stream of the GPU's double, and the numbers that are in its memory.
struct gpu {
  kernels::queue q;

  explicit gpu(bool half = false, int processors = 3) {
    q.half = half;
    q.processors = processors;
    REQUIRE(cudaStreamCreate(&q.stream) == cudaSuccess);
  }
  ~gpu() {
    cudaStreamDestroy(q.stream);
    for (void* each : held_) cudaFree(each);
  }
  gpu(gpu const&) = delete;
  gpu& operator=(gpu const&) = delete;

  /// Memory full of NaN, `before` elements after an address that is a multiple of 256.
  template <class T>
  T* room(std::size_t n, std::size_t before = 0) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, (n + before) * sizeof(T)) == cudaSuccess);
    held_.push_back(memory);
    return static_cast<T*>(memory) + before;
  }

  template <class T>
  T* put(std::vector<T> const& v, std::size_t before = 0) {
    T* const memory = room<T>(v.size(), before);
    REQUIRE(cudaMemcpyAsync(memory, v.data(), v.size() * sizeof(T), cudaMemcpyDefault, q.stream) ==
            cudaSuccess);
    return memory;
  }

  template <class T>
  std::vector<T> get(T const* memory, std::size_t n) {
    std::vector<T> v(n);
    REQUIRE(cudaMemcpyAsync(v.data(), memory, n * sizeof(T), cudaMemcpyDefault, q.stream) == cudaSuccess);
    return v;
  }

  // Activations, in the precision of the queue.
  void* activations(std::size_t n, std::size_t before = 0) {
    if (q.half) return room<std::uint16_t>(n, before);
    return room<float>(n, before);
  }

  template <class T>
  void* put_activations(std::vector<T> const& v, std::size_t before = 0) {
    if (!q.half) return put(std::vector<float>(v.begin(), v.end()), before);
    std::vector<std::uint16_t> small(v.size());
    std::transform(v.begin(), v.end(), small.begin(), [](T x) { return edl::to_bfloat16(float(x)); });
    return put(small, before);
  }

  std::vector<float> get_activations(void const* memory, std::size_t n) {
    if (!q.half) return get(static_cast<float const*>(memory), n);
    auto const small = get(static_cast<std::uint16_t const*>(memory), n);
    std::vector<float> v(n);
    std::transform(small.begin(), small.end(), v.begin(), edl::from_bfloat16);
    return v;
  }

  /// Numbers that activations can hold.
  template <class T = double>
  std::vector<T> draw(std::size_t n, std::uint64_t key) const {
    auto v = numbers<T>(n, key);
    if (q.half)
      for (T& x : v) x = T(edl::from_bfloat16(edl::to_bfloat16(float(x))));
    return v;
  }

 private:
  std::vector<void*> held_;
};

/// Whether all are the same, but for rounding. It may be `error` of the greatest number, or of those that it
/// was computed of (`greatest`), and that of a bfloat16 where `half`.
template <class T, class U>
bool close(std::vector<T> const& got, std::vector<U> const& wanted, bool half, double error = 1e-6,
           double greatest = 0) {
  if (got.size() != wanted.size()) return false;
  for (U const x : wanted)
    if (std::isfinite(double(x))) greatest = std::max(greatest, std::abs(double(x)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    double const a = double(got[i]), b = double(wanted[i]);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (std::abs(a - b) <= error * greatest + (half ? std::abs(b) / 256 : 0)) continue;
    MESSAGE("element " << i << " is " << a << ", not " << b);
    return false;
  }
  return true;
}

/// work(half, backwards): in both precisions, threads in both orders.
template <class Work>
void in_all_ways(Work&& work) {
  for (bool const half : {false, true})
    for (bool const backwards : {false, true}) {
      CAPTURE(half);
      CAPTURE(backwards);
      edl::cuda_double::reverse(backwards);
      work(half);
    }
  edl::cuda_double::reverse(false);
}
