// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/narrow_samples.hpp"

namespace edl {
namespace detail {

/// Visits every window of some samples: visit(element of y, elements of x before the window's first row,
/// rows, columns).
template <class Visit>
void for_each_window(pool_geometry const& g, std::size_t samples, Visit&& visit) {
  auto const c = std::size_t(g.in.channels);
  std::size_t to = 0;
  for (std::size_t s = 0; s < samples; ++s)
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

/// Calls work(pooling, samples, first element of x, of y) for samples [begin, end). Where any are narrow,
/// these are the rows of x that belong to one row of y, seen as a sample. `sums`: what windows share is
/// summed up, so that where they overlap a sample stays whole.
template <class Work>
void pool_in_parts(pool_geometry const& g, std::size_t begin, std::size_t end, bool sums, Work&& work) {
  bool const overlap = g.stride.height < g.window.height;
  if (!g.narrow.any()) return work(g, end - begin, begin * g.in.size(), begin * g.out.size());
  std::size_t const row_of_x = g.in.size() / std::size_t(g.in.height),
                    row_of_y = g.out.size() / std::size_t(g.out.height);
  for (std::size_t s = begin; s < end; ++s) {
    if (overlap && sums) {
      work(g, 1, s * g.in.size(), s * g.out.size());
      continue;
    }
    for (int i = 0; i < g.out.height; ++i) {
      int const row = i * g.stride.height - g.before.height, top = std::max(row, 0);
      // Rows that no window covers go with those before them.
      int const rows = overlap ? g.window.height : g.stride.height;
      int const bottom = i + 1 == g.out.height && !overlap ? g.in.height : std::min(row + rows, g.in.height);
      pool_geometry part = g;
      part.in.height = bottom - top;
      part.out.height = 1;
      part.before.height = top - row;
      work(part, 1, s * g.in.size() + std::size_t(top) * row_of_x,
           s * g.out.size() + std::size_t(i) * row_of_y);
    }
  }
}

/// work(pooling, samples, elements of x, where those of y are left) for parts of the batch.
template <class T, class Work>
void pool_forward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, T const* x, T const* y, Work&& work) {
  auto const samples = std::size_t(batch);
  int const parts = std::min(cpu.parts(samples, 1), cpu.parts(samples * g.in.size(), 16 * 1024));
  cpu.share(samples, parts, [&](std::size_t begin, std::size_t end, int t) {
    narrow_samples<T> const in(cpu, t, 1, x, g.narrow.in), out(cpu, t, 2, y, g.narrow.out);
    pool_in_parts(g, begin, end, false,
                  [&](pool_geometry const& part, std::size_t n, std::size_t i, std::size_t o) {
                    work(part, n, in.read(i, n * part.in.size()), out.place(o, n * part.out.size()));
                    out.write(o, n * part.out.size());
                  });
  });
}

/// work(pooling, samples, elements of x, of dy, of dx, thread), where those of dx are zeros to be added to. x
/// may be null.
template <class T, class Work>
void pool_backward(basic_cpu<T>& cpu, pool_geometry const& g, int batch, T const* x, T const* dy, T const* dx,
                   Work&& work) {
  auto const samples = std::size_t(batch);
  int const parts = std::min(cpu.parts(samples, 1), cpu.parts(samples * g.in.size(), 16 * 1024));
  cpu.share(samples, parts, [&](std::size_t begin, std::size_t end, int t) {
    narrow_samples<T> const in(cpu, t, 1, x, g.narrow.in), slope(cpu, t, 2, dy, g.narrow.out),
        back(cpu, t, 3, dx, g.narrow.in);
    pool_in_parts(g, begin, end, true,
                  [&](pool_geometry const& part, std::size_t n, std::size_t i, std::size_t o) {
                    std::size_t const inputs = n * part.in.size();
                    T* const to = back.place(i, inputs);
                    std::fill_n(to, inputs, T(0));
                    work(part, n, in.read(i, inputs), slope.read(o, n * part.out.size()), to, t);
                    back.write(i, inputs);
                  });
  });
}

template <class T>
using channels = Eigen::Array<T, Eigen::Dynamic, 1>;

}  // namespace detail

template <class T>
void basic_cpu<T>::max_pool_forward(pool_geometry const& g, int batch, view<T> x, std::span<T> y) {
  auto const c = std::size_t(g.in.channels), row = c * std::size_t(g.in.width);
  detail::pool_forward<T>(*this, g, batch, x.data(), y.data(),
                          [&](pool_geometry const& part, std::size_t samples, T const* all, T* result) {
                            detail::for_each_window(
                                part, samples, [&](std::size_t to, std::size_t from, int rows, int columns) {
                                  T* __restrict const most = result + to;
                                  std::copy_n(all + from, c, most);
                                  for (std::size_t a = 0; a < std::size_t(rows); ++a)
                                    for (std::size_t b = 0; b < std::size_t(columns); ++b) {
                                      T const* const here = all + from + a * row + b * c;
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
  constexpr std::size_t unit = 1024;
  detail::pool_backward<T>(
      *this, g, batch, x.data(), dy.data(), dx.data(),
      [&](pool_geometry const& part, std::size_t samples, T const* all, T const* slope, T* back, int thread) {
        detail::for_each_window(part, samples, [&](std::size_t to, std::size_t from, int rows, int columns) {
          for (std::size_t begin = 0; begin < c; begin += unit) {
            std::size_t const n = std::min(unit, c - begin);
            // The gradient that is left to assign: taking all of it leaves exactly zero for equal elements
            // that follow.
            T* __restrict const rest = this->left(thread).data(), * __restrict const most = rest + unit;
            std::copy_n(slope + to + begin, n, rest);
            // Reads x itself, because the stored result may have been rounded when x was not, or the other
            // way round.
            std::copy_n(all + from + begin, n, most);
            for (std::size_t a = 0; a < std::size_t(rows); ++a)
              for (std::size_t b = 0; b < std::size_t(columns); ++b) {
                T const* const here = all + from + a * row + b * c + begin;
                for (std::size_t k = 0; k < n; ++k)
                  most[k] = here[k] > most[k] || here[k] != here[k] ? here[k] : most[k];
              }
            for (std::size_t a = 0; a < std::size_t(rows); ++a)
              for (std::size_t b = 0; b < std::size_t(columns); ++b) {
                T const* const here = all + from + a * row + b * c + begin;
                T* __restrict const into = back + from + a * row + b * c + begin;
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
  detail::pool_forward<T>(
      *this, g, batch, x.data(), y.data(),
      [&](pool_geometry const& part, std::size_t samples, T const* all, T* result) {
        detail::for_each_window(part, samples, [&](std::size_t to, std::size_t from, int rows, int columns) {
          Eigen::Map<detail::channels<T>> mean(result + to, c);
          mean.setZero();
          for (int a = 0; a < rows; ++a)
            for (int b = 0; b < columns; ++b)
              mean += Eigen::Map<detail::channels<T> const>(all + from + a * row + b * c, c);
          mean *= T(1) / T(rows * columns);
        });
      });
}

template <class T>
void basic_cpu<T>::average_pool_backward(pool_geometry const& g, int batch, view<T> dy, std::span<T> dx) {
  auto const c = Eigen::Index(g.in.channels), row = c * g.in.width;
  detail::pool_backward<T>(
      *this, g, batch, nullptr, dy.data(), dx.data(),
      [&](pool_geometry const& part, std::size_t samples, T const*, T const* slope, T* back, int) {
        detail::for_each_window(part, samples, [&](std::size_t to, std::size_t from, int rows, int columns) {
          Eigen::Map<detail::channels<T> const> const share(slope + to, c);
          T const weight = T(1) / T(rows * columns);
          for (int a = 0; a < rows; ++a)
            for (int b = 0; b < columns; ++b)
              Eigen::Map<detail::channels<T>>(back + from + a * row + b * c, c) += share * weight;
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
