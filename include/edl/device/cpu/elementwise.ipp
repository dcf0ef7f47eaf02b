// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/elementwise.hpp"

namespace edl {

template <class T>
void copy(basic_cpu<T>&, reads<T> x, writes<T> y) {
  std::ranges::copy(x, y.begin());
}

template <class T>
void add(basic_cpu<T>&, reads<T> a, reads<T> b, writes<T> y) {
  using array = Eigen::Array<T, Eigen::Dynamic, 1>;
  auto const n = Eigen::Index(y.size());
  Eigen::Map<array>(y.data(), n) =
      Eigen::Map<array const>(a.data(), n) + Eigen::Map<array const>(b.data(), n);
}

template <class T>
void copy_columns(basic_cpu<T>&, std::size_t rows, std::size_t columns, reads<T> x, std::size_t x_stride,
                  writes<T> y, std::size_t y_stride) {
  for (std::size_t i = 0; i < rows; ++i)
    std::copy_n(x.data() + i * x_stride, columns, y.data() + i * y_stride);
}

#ifndef EDL_HEADER_ONLY
template void copy(basic_cpu<float>&, view<float>, std::span<float>);
template void copy(basic_cpu<double>&, view<double>, std::span<double>);
template void add(basic_cpu<float>&, view<float>, view<float>, std::span<float>);
template void add(basic_cpu<double>&, view<double>, view<double>, std::span<double>);
template void copy_columns(basic_cpu<float>&, std::size_t, std::size_t, view<float>, std::size_t,
                           std::span<float>, std::size_t);
template void copy_columns(basic_cpu<double>&, std::size_t, std::size_t, view<double>, std::size_t,
                           std::span<double>, std::size_t);
#endif

}  // namespace edl
