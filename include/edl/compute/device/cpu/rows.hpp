// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/compute/device/activation.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace edl {

/// Sets each of the `rows` rows of y to `row`, or to zeros if it is empty.
template <class T>
void fill_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, std::type_identity_t<view<T>> row,
               std::type_identity_t<std::span<T>> y);

/// y = f(y + row), row by row; `row` may be empty.
template <class T>
void finish_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, activation f,
                 std::type_identity_t<view<T>> row, std::type_identity_t<std::span<T>> y);

/// sums = Σ over the rows of x, in parts, so that the error grows with the square root of their number.
template <class T>
void sum_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, std::type_identity_t<view<T>> x,
              std::type_identity_t<std::span<T>> sums);

namespace detail {

/// Adds the other threads' sums to the first one's: part(t) is the sums of thread `t`.
template <class T, class Part>
void add_parts(basic_cpu<T>& cpu, int parts, std::size_t size, Part&& part) {
  if (parts < 2) return;
  cpu.share(size, cpu.parts(size, 4096), [&](std::size_t begin, std::size_t end, int) {
    T* __restrict const sum = part(0);
    for (int p = 1; p < parts; ++p) {
      T const* const more = part(p);
      for (std::size_t i = begin; i < end; ++i) sum[i] += more[i];
    }
  });
}

}  // namespace detail
}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/rows.ipp"
#endif
