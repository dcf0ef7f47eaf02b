// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/rows.hpp"

namespace edl {

template <class T>
void fill_rows(basic_cpu<T>&, std::size_t rows, std::size_t columns, reads<T> row, writes<T> y) {
  if (row.empty())
    std::fill_n(y.data(), rows * columns, T(0));
  else
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(row.data(), columns, y.data() + i * columns);
}

template <class T>
void sum_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, reads<T> x, writes<T> sums) {
  using row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using read_row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1> const>;
  constexpr std::size_t part_rows = 64, part_columns = 1024;
  for (std::size_t begin = 0; begin < columns; begin += part_columns) {
    auto const n = Eigen::Index(std::min(part_columns, columns - begin));
    row total(sums.data() + begin, n), part(cpu.left().data(), n);
    total.setZero();
    for (std::size_t i = 0; i < rows;) {
      part.setZero();
      for (std::size_t const end = std::min(i + part_rows, rows); i < end; ++i)
        part += read_row(x.data() + i * columns + begin, n);
      total += part;
    }
  }
}

#ifndef EDL_HEADER_ONLY
template void fill_rows(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::span<float>);
template void fill_rows(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::span<double>);
template void sum_rows(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::span<float>);
template void sum_rows(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::span<double>);
#endif

}  // namespace edl
