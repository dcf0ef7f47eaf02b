// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace edl {

/// A matrix by rows with a stride of `stride` elements; `transposed`: it is transposed in a product. Narrow
/// elements are bfloat16 numbers, which only products on all threads accept.
template <class T>
struct matrix {
  T const* data;
  std::size_t stride;
  bool transposed = false;
  bool narrow = false;
};

namespace detail {

/// The division of a product's rows or columns among threads.
struct product_split {
  static constexpr std::size_t unit = 16;  // rows or columns that stay together
  std::size_t extent = 0;
  int parts = 1;

  constexpr std::size_t units() const { return (extent + unit - 1) / unit; }
  /// The beginning of a part, and the end of the one before.
  constexpr std::size_t begin(int part) const {
    return std::min(units() * std::size_t(part) / std::size_t(parts) * unit, extent);
  }
};

/// For m × k by k × n.
template <class T>
product_split split_product(basic_cpu<T> const& cpu, bool by_columns, std::size_t m, std::size_t n,
                            std::size_t k) {
  constexpr std::size_t worthwhile = 256 * 1024;  // multiplications of a thread
  product_split split{.extent = by_columns ? n : m};
  split.parts = std::min(cpu.parts(split.units(), 1), cpu.parts(m * n * k, worthwhile));
  return split;
}

/// Calls work(begin, end, part) for all parts, in parallel.
template <class T, class Work>
void share_product(basic_cpu<T>& cpu, product_split const& split, Work&& work) {
  cpu.team().run(split.parts, [&](int part) { work(split.begin(part), split.begin(part + 1), part); });
}

}  // namespace detail

/// c (m × n, rows `c_stride` apart) += a (m × k) · b (k × n), after any transposition. Runs on the calling
/// thread, which must be the device's thread number `thread`. Allocates nothing.
template <class T>
void multiply_add(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                  matrix<T> b, T* c, std::size_t c_stride);

/// c = a · b, or with `add` c += a · b, likewise on the calling thread; uses a library's kernel if the device
/// uses libraries.
template <class T>
void multiply_here(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                   matrix<T> b, T* c, std::size_t c_stride, bool add = false);

/// c = a · b likewise, on all threads of the device, by the kernel that the device chooses for `key`. Rows of
/// a narrow c must be contiguous.
template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, T* c, std::size_t c_stride, bool narrow = false);

/// c = f(a · b + bias), in contiguous rows; `bias` may be empty.
template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, activation f, view<T> bias, T* c);

/// The name of the kernel that computes it.
template <class T>
std::string describe_product(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n,
                             std::size_t k, matrix<T> a, matrix<T> b, T* c, std::size_t c_stride);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/gemm.ipp"
#endif
