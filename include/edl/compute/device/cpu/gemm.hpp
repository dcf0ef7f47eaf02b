// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace edl {

/// A matrix by rows that stand `stride` elements apart; `transposed` says that it enters a product turned.
/// Elements that are narrow are bfloat16 numbers. Products on all threads take such.
template <class T>
struct matrix {
  T const* data;
  std::size_t stride;
  bool transposed = false;
  bool narrow = false;
};

namespace detail {

/// How the threads share the rows or columns of a product.
struct product_split {
  static constexpr std::size_t unit = 16;  // rows or columns that stay together
  std::size_t extent = 0;
  int parts = 1;

  constexpr std::size_t units() const { return (extent + unit - 1) / unit; }
  /// Where a part begins, and the one before it ends.
  constexpr std::size_t begin(int part) const {
    return std::min(units() * std::size_t(part) / std::size_t(parts) * unit, extent);
  }
};

/// Of m × k by k × n.
template <class T>
product_split split_product(basic_cpu<T> const& cpu, bool by_columns, std::size_t m, std::size_t n,
                            std::size_t k) {
  constexpr std::size_t worthwhile = 256 * 1024;  // multiplications of a thread
  product_split split{.extent = by_columns ? n : m};
  split.parts = std::min(cpu.parts(split.units(), 1), cpu.parts(m * n * k, worthwhile));
  return split;
}

/// work(begin, end, part) for all parts, side by side.
template <class T, class Work>
void share_product(basic_cpu<T>& cpu, product_split const& split, Work&& work) {
  cpu.team().run(split.parts, [&](int part) { work(split.begin(part), split.begin(part + 1), part); });
}

}  // namespace detail

/// c (m × n, rows `c_stride` apart) += a (m × k) · b (k × n), after any transposition. It runs on the calling
/// thread, which is number `thread` of the device's. Allocates nothing.
template <class T>
void multiply_add(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                  matrix<T> b, T* c, std::size_t c_stride);

/// c = a · b, or with `add` c += a · b, on the calling thread likewise, by a library's kernel where the
/// device uses them.
template <class T>
void multiply_here(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                   matrix<T> b, T* c, std::size_t c_stride, bool add = false);

/// c = a · b likewise, on all of the device's threads, by whichever kernel the device chooses for `key`. Rows
/// of a c that is narrow have no gaps.
template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, T* c, std::size_t c_stride, bool narrow = false);

/// c = f(a · b + bias), row by row and without gaps; `bias` may be empty.
template <class T>
void multiply(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n, std::size_t k,
              matrix<T> a, matrix<T> b, activation f, view<T> bias, T* c);

/// Which kernel that is, in words.
template <class T>
std::string describe_product(basic_cpu<T>& cpu, detail::kernel_key const& key, std::size_t m, std::size_t n,
                             std::size_t k, matrix<T> a, matrix<T> b, T* c, std::size_t c_stride);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/gemm.ipp"
#endif
