// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/lanes.hpp"
#include "edl/compute/device/cpu/rows.hpp"
#include "edl/compute/device/cpu/vector_functions.hpp"

namespace edl {

template <class T>
void basic_cpu<T>::layer_norm_forward(std::size_t rows, std::size_t channels, T epsilon, view<T> x,
                                      view<T> gamma, view<T> beta, std::span<T> y, std::span<T> kept) {
  using detail::load;
  this->share(rows, this->parts(rows * channels, 16 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const *const g = gamma.data(), *const b = beta.data();
    for (std::size_t row = begin; row < end; ++row) {
      T const *const from = x.data() + row * channels;
      T *const to = y.data() + row * channels;
      T const mean =
          detail::sum_by_lanes<T>(channels, [&]<class V>(std::size_t i) { return V(load<V>(from + i)); }) /
          T(channels);
      T const variance = detail::sum_by_lanes<T>(channels,
                                                 [&]<class V>(std::size_t i) {
                                                   V const off = load<V>(from + i) - mean;
                                                   return V(off * off);
                                                 }) /
                         T(channels);
      T const scale = 1 / std::sqrt(variance + epsilon);
      detail::by_lanes<T>(channels, [&]<class V>(std::size_t i) {
        detail::store<V>(to + i, load<V>(g + i) * ((load<V>(from + i) - mean) * scale) + load<V>(b + i));
      });
      kept[2 * row] = mean;
      kept[2 * row + 1] = scale;
    }
  });
}

template <class T>
void basic_cpu<T>::layer_norm_backward(std::size_t rows, std::size_t channels, view<T> x, view<T> gamma,
                                       view<T> dy, view<T> kept, std::span<T> dx, std::span<T> dgamma,
                                       std::span<T> dbeta) {
  using detail::load, detail::store;
  constexpr std::size_t part_rows = 64;  // in parts, so that the error grows with the root of their number
  int const parts = this->parts(rows * channels, 16 * 1024);
  // Of each thread: the sums of gamma's gradient, of beta's, and the same of one part.
  auto const sums = [&](int t) { return this->room(t, 0, 4 * channels).data(); };
  for (int t = 0; t < parts; ++t) std::fill_n(sums(t), 2 * channels, T(0));
  this->share(rows, parts, [&](std::size_t begin, std::size_t end, int t) {
    T *const total = sums(t), *const part = total + 2 * channels;
    T const *const g = gamma.data();
    for (std::size_t first = begin; first < end; first += part_rows) {
      std::fill_n(part, 2 * channels, T(0));
      for (std::size_t row = first; row < std::min(first + part_rows, end); ++row) {
        T const *const from = x.data() + row * channels, *const slope = dy.data() + row * channels;
        T const mean = kept[2 * row], scale = kept[2 * row + 1];
        if (!dgamma.empty())
          detail::by_lanes<T>(channels, [&]<class V>(std::size_t i) {
            V const d = load<V>(slope + i);
            store<V>(part + i, load<V>(part + i) + d * ((load<V>(from + i) - mean) * scale));
            store<V>(part + channels + i, load<V>(part + channels + i) + d);
          });
        if (dx.empty()) continue;
        T const sum = detail::sum_by_lanes<T>(
            channels, [&]<class V>(std::size_t i) { return V(load<V>(slope + i) * load<V>(g + i)); });
        T const along = detail::sum_by_lanes<T>(channels, [&]<class V>(std::size_t i) {
          return V(load<V>(slope + i) * load<V>(g + i) * ((load<V>(from + i) - mean) * scale));
        });
        T const a = sum / T(channels), b = along / T(channels) * scale;
        T *const to = dx.data() + row * channels;
        detail::by_lanes<T>(channels, [&]<class V>(std::size_t i) {
          store<V>(to + i,
                   (load<V>(slope + i) * load<V>(g + i) - a - (load<V>(from + i) - mean) * b) * scale);
        });
      }
      for (std::size_t i = 0; i < 2 * channels; ++i) total[i] += part[i];
    }
  });
  if (dgamma.empty()) return;
  detail::add_parts(*this, parts, 2 * channels, sums);
  std::copy_n(sums(0), channels, dgamma.data());
  std::copy_n(sums(0) + channels, channels, dbeta.data());
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::layer_norm_forward(std::size_t, std::size_t, float, view<float>, view<float>,
                                                   view<float>, std::span<float>, std::span<float>);
template void basic_cpu<double>::layer_norm_forward(std::size_t, std::size_t, double, view<double>,
                                                    view<double>, view<double>, std::span<double>,
                                                    std::span<double>);
template void basic_cpu<float>::layer_norm_backward(std::size_t, std::size_t, view<float>, view<float>,
                                                    view<float>, view<float>, std::span<float>,
                                                    std::span<float>, std::span<float>);
template void basic_cpu<double>::layer_norm_backward(std::size_t, std::size_t, view<double>, view<double>,
                                                     view<double>, view<double>, std::span<double>,
                                                     std::span<double>, std::span<double>);
#endif

}  // namespace edl
