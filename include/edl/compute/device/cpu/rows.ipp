// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/compute/device/cpu/rows.hpp"

namespace edl {

template <class T>
void fill_rows(basic_cpu<T>&, std::size_t rows, std::size_t columns, std::type_identity_t<view<T>> row,
               std::type_identity_t<std::span<T>> y) {
  if (row.empty())
    std::fill_n(y.data(), rows * columns, T(0));
  else
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(row.data(), columns, y.data() + i * columns);
}

template <class T>
void finish_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, activation f,
                 std::type_identity_t<view<T>> row, std::type_identity_t<std::span<T>> y) {
  cpu.share(rows, cpu.parts(rows * columns, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const* const more = row.data();
    bool const relu = f == activation::relu;
    for (std::size_t i = begin; i < end; ++i) {
      T* __restrict const to = y.data() + i * columns;
      if (!row.empty())
        for (std::size_t k = 0; k < columns; ++k) to[k] += more[k];
      if (relu)
        for (std::size_t k = 0; k < columns; ++k) to[k] = to[k] < T(0) ? T(0) : to[k];
    }
  });
}

template <class T>
void sum_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, std::type_identity_t<view<T>> x,
              std::type_identity_t<std::span<T>> sums) {
  using row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using read_row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1> const>;
  constexpr std::size_t part_rows = 64, part_columns = 1024;
  int const parts = cpu.parts(rows * columns, 64 * 1024);
  auto const total_of = [&](int t) { return t == 0 ? sums.data() : cpu.room(t, 1, columns).data(); };
  cpu.share(rows, parts, [&](std::size_t first, std::size_t last, int t) {
    for (std::size_t begin = 0; begin < columns; begin += part_columns) {
      auto const n = Eigen::Index(std::min(part_columns, columns - begin));
      row total(total_of(t) + begin, n), part(cpu.left(t).data(), n);
      total.setZero();
      for (std::size_t i = first; i < last;) {
        part.setZero();
        for (std::size_t const end = std::min(i + part_rows, last); i < end; ++i)
          part += read_row(x.data() + i * columns + begin, n);
        total += part;
      }
    }
  });
  detail::add_parts(cpu, parts, columns, total_of);
}

#ifndef EDL_HEADER_ONLY
template void finish_rows(basic_cpu<float>&, std::size_t, std::size_t, activation, view<float>,
                          std::span<float>);
template void finish_rows(basic_cpu<double>&, std::size_t, std::size_t, activation, view<double>,
                          std::span<double>);
template void fill_rows(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::span<float>);
template void fill_rows(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::span<double>);
template void sum_rows(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::span<float>);
template void sum_rows(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::span<double>);
#endif

}  // namespace edl
