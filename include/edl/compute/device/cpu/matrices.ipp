// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"

namespace edl {

template <class T>
void basic_cpu<T>::multiply_matrices(product_geometry const& g, view<T> a, view<T> b, std::span<T> y) {
  constexpr std::size_t block = 64;  // rows of a product that one thread computes at a time
  std::size_t const blocks = (g.rows + block - 1) / block, units = g.products * blocks;
  constexpr std::size_t worthwhile = 64 * 1024;  // multiplications of a thread
  std::size_t const each = std::min(block, g.rows) * g.inner * g.columns;
  int const parts = this->parts(units, std::max<std::size_t>(worthwhile / std::max<std::size_t>(each, 1), 1));
  this->share(units, parts, [&](std::size_t begin, std::size_t end, int t) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      std::size_t const product = unit / blocks, first = unit % blocks * block;
      T const* const left = a.data() + product * g.rows * g.inner;
      T const* const right = b.data() + product * g.inner * g.columns;
      matrix<T> const rows =
          g.turned_left ? matrix<T>{left + first, g.rows, true} : matrix<T>{left + first * g.inner, g.inner};
      multiply_here<T>(*this, t, std::min(block, g.rows - first), g.columns, g.inner, rows,
                       {right, g.turned_right ? g.inner : g.columns, g.turned_right},
                       y.data() + (product * g.rows + first) * g.columns, g.columns);
    }
  });
}

template <class T>
void basic_cpu<T>::transpose(std::size_t matrices, std::size_t rows, std::size_t columns, view<T> x,
                             std::span<T> y) {
  constexpr std::size_t tile = 16;  // rows and columns of it stay in the first level of cache
  std::size_t const strips = (columns + tile - 1) / tile, units = matrices * strips;
  this->share(units, this->parts(x.size(), 32 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      std::size_t const at = unit / strips * rows * columns, first = unit % strips * tile,
                        last = std::min(first + tile, columns);
      for (std::size_t row = 0; row < rows; row += tile)
        for (std::size_t c = first; c < last; ++c)
          for (std::size_t r = row; r < std::min(row + tile, rows); ++r)
            y[at + c * rows + r] = x[at + r * columns + c];
    }
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::multiply_matrices(product_geometry const&, view<float>, view<float>,
                                                  std::span<float>);
template void basic_cpu<double>::multiply_matrices(product_geometry const&, view<double>, view<double>,
                                                   std::span<double>);
template void basic_cpu<float>::transpose(std::size_t, std::size_t, std::size_t, view<float>,
                                          std::span<float>);
template void basic_cpu<double>::transpose(std::size_t, std::size_t, std::size_t, view<double>,
                                           std::span<double>);
#endif

}  // namespace edl
