// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {
namespace detail {

/// Visits every window of samples [first, last): visit(element of y, elements of x before the window's first
/// row, rows, row stride, columns).
template <class Visit>
void for_each_window(pool_geometry const& g, std::size_t first, std::size_t last, Visit&& visit) {
  auto const c = std::size_t(g.in.channels);
  std::size_t to = first * g.out.size();
  for (std::size_t s = first; s < last; ++s)
    for (int i = 0; i < g.out.height; ++i) {
      int const row = i * g.stride.height - g.before.height;
      int const top = std::max(row, 0), bottom = std::min(row + g.window.height, g.in.height);
      for (int j = 0; j < g.out.width; ++j, to += c) {
        int const column = j * g.stride.width - g.before.width;
        int const left = std::max(column, 0), right = std::min(column + g.window.width, g.in.width);
        auto const from =
            s * g.in.size() + (std::size_t(top) * std::size_t(g.in.width) + std::size_t(left)) * c;
        visit(to, from, bottom - top, right - left);
      }
    }
}

/// work(first, last, thread) for shares of the batch.
template <class T, class Work>
void each_sample(basic_cpu<T>& cpu, pool_geometry const& g, int batch, Work&& work) {
  auto const samples = std::size_t(batch);
  cpu.share(samples, std::min(cpu.parts(samples, 1), cpu.parts(samples * g.in.size(), 16 * 1024)), work);
}

template <class T>
using channels = Eigen::Array<T, Eigen::Dynamic, 1>;

}  // namespace detail

template <class T>
void basic_cpu<T>::max_pool_forward(pool_geometry const& g, int batch, view<T> x, std::span<T> y) {
  auto const c = std::size_t(g.in.channels), row = c * std::size_t(g.in.width);
  detail::each_sample(*this, g, batch, [&](std::size_t first, std::size_t last, [[maybe_unused]] int thread) {
    detail::for_each_window(g, first, last, [&](std::size_t to, std::size_t from, int rows, int columns) {
      T* __restrict const most = y.data() + to;
      std::copy_n(x.data() + from, c, most);
      for (std::size_t a = 0; a < std::size_t(rows); ++a)
        for (std::size_t b = 0; b < std::size_t(columns); ++b) {
          T const* const here = x.data() + from + a * row + b * c;
          for (std::size_t k = 0; k < c; ++k)
            most[k] = here[k] > most[k] || here[k] != here[k] ? here[k] : most[k];
        }
    });
  });
}

template <class T>
void basic_cpu<T>::max_pool_backward(pool_geometry const& g, int batch, view<T> x, view<T>, view<T> dy,
                                     std::span<T> dx) {
  auto const c = std::size_t(g.in.channels), row = c * std::size_t(g.in.width);
  std::ranges::fill(dx, T(0));
  constexpr std::size_t part = 1024;
  detail::each_sample(*this, g, batch, [&](std::size_t first, std::size_t last, [[maybe_unused]] int thread) {
    detail::for_each_window(g, first, last, [&](std::size_t to, std::size_t from, int rows, int columns) {
      for (std::size_t begin = 0; begin < c; begin += part) {
        std::size_t const n = std::min(part, c - begin);
        // What is still to be given away: taking all of it leaves exactly zero for an equal element after it.
        T* __restrict const rest = this->left(thread).data(), * __restrict const most = rest + part;
        std::copy_n(dy.data() + to + begin, n, rest);
        // Of x itself: what is kept of the result may have been rounded, and x not, or the other way round.
        std::copy_n(x.data() + from + begin, n, most);
        for (std::size_t a = 0; a < std::size_t(rows); ++a)
          for (std::size_t b = 0; b < std::size_t(columns); ++b) {
            T const* const here = x.data() + from + a * row + b * c + begin;
            for (std::size_t k = 0; k < n; ++k)
              most[k] = here[k] > most[k] || here[k] != here[k] ? here[k] : most[k];
          }
        for (std::size_t a = 0; a < std::size_t(rows); ++a)
          for (std::size_t b = 0; b < std::size_t(columns); ++b) {
            T const* const here = x.data() + from + a * row + b * c + begin;
            T* __restrict const into = dx.data() + from + a * row + b * c + begin;
            for (std::size_t k = 0; k < n; ++k) {
              T const taken = here[k] == most[k] ? rest[k] : T(0);
              into[k] += taken;
              rest[k] -= taken;
            }
          }
      }
    });
  });
}

template <class T>
void basic_cpu<T>::average_pool_forward(pool_geometry const& g, int batch, view<T> x, std::span<T> y) {
  auto const c = Eigen::Index(g.in.channels), row = c * g.in.width;
  detail::each_sample(*this, g, batch, [&](std::size_t first, std::size_t last, [[maybe_unused]] int thread) {
    detail::for_each_window(g, first, last, [&](std::size_t to, std::size_t from, int rows, int columns) {
      Eigen::Map<detail::channels<T>> mean(y.data() + to, c);
      mean.setZero();
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b)
          mean += Eigen::Map<detail::channels<T> const>(x.data() + from + a * row + b * c, c);
      mean *= T(1) / T(rows * columns);
    });
  });
}

template <class T>
void basic_cpu<T>::average_pool_backward(pool_geometry const& g, int batch, view<T> dy, std::span<T> dx) {
  auto const c = Eigen::Index(g.in.channels), row = c * g.in.width;
  std::ranges::fill(dx, T(0));
  detail::each_sample(*this, g, batch, [&](std::size_t first, std::size_t last, [[maybe_unused]] int thread) {
    detail::for_each_window(g, first, last, [&](std::size_t to, std::size_t from, int rows, int columns) {
      Eigen::Map<detail::channels<T> const> const share(dy.data() + to, c);
      T const part = T(1) / T(rows * columns);
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b)
          Eigen::Map<detail::channels<T>>(dx.data() + from + a * row + b * c, c) += share * part;
    });
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::max_pool_forward(pool_geometry const&, int, view<float>, std::span<float>);
template void basic_cpu<double>::max_pool_forward(pool_geometry const&, int, view<double>, std::span<double>);
template void basic_cpu<float>::max_pool_backward(pool_geometry const&, int, view<float>, view<float>,
                                                  view<float>, std::span<float>);
template void basic_cpu<double>::max_pool_backward(pool_geometry const&, int, view<double>, view<double>,
                                                   view<double>, std::span<double>);
template void basic_cpu<float>::average_pool_forward(pool_geometry const&, int, view<float>,
                                                     std::span<float>);
template void basic_cpu<double>::average_pool_forward(pool_geometry const&, int, view<double>,
                                                      std::span<double>);
template void basic_cpu<float>::average_pool_backward(pool_geometry const&, int, view<float>,
                                                      std::span<float>);
template void basic_cpu<double>::average_pool_backward(pool_geometry const&, int, view<double>,
                                                       std::span<double>);
#endif

}  // namespace edl
