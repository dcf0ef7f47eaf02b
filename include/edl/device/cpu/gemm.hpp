// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// A matrix by rows that stand `stride` elements apart; `transposed` says that it enters a product turned.
template <class T>
struct matrix {
  T const* data;
  std::size_t stride;
  bool transposed = false;
};

/// c (m × n, rows `c_stride` apart) += a (m × k) · b (k × n), after any transposition, on the calling thread,
/// which is number `thread` of the device's. Allocates nothing.
template <class T>
void multiply_add(basic_cpu<T>& cpu, int thread, std::size_t m, std::size_t n, std::size_t k, matrix<T> a,
                  matrix<T> b, T* c, std::size_t c_stride);

namespace detail {

/// Whether a product of these extents, on one thread, is computed by the device's library.
template <class T>
bool product_is_librarys(basic_cpu<T> const& cpu, std::size_t m, std::size_t n, std::size_t k);

}  // namespace detail

/// c = a · b likewise, on all of the device's threads, by its library's product where it has one.
template <class T>
void multiply(basic_cpu<T>& cpu, std::size_t m, std::size_t n, std::size_t k, matrix<T> a, matrix<T> b, T* c,
              std::size_t c_stride);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/gemm.ipp"
#endif
