// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

#include "edl/compute/optim/adam.hpp"

namespace edl {

template <std::floating_point T>
void adam::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                 std::uint64_t step) const {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const m = slots[0].data();
  T* __restrict const v = slots[1].data();
  T const b1 = T(beta_1), b2 = T(beta_2), c1 = 1 - b1, c2 = 1 - b2, eps = T(epsilon);
  double const t = double(step) + 1;
  double const corrected = std::sqrt(1 - std::pow(double(b2), t)) / (1 - std::pow(double(b1), t));
  T const alpha = T(double(rate) * corrected), keep = 1 - rate * T(weight_decay);
  if (amsgrad) {
    T* __restrict const largest = slots[2].data();
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = b1 * m[i] + c1 * g[i];
      v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
      largest[i] = v[i] > largest[i] ? v[i] : largest[i];
      w[i] = keep * w[i] - alpha * m[i] / (std::sqrt(largest[i]) + eps);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = b1 * m[i] + c1 * g[i];
      v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
      w[i] = keep * w[i] - alpha * m[i] / (std::sqrt(v[i]) + eps);
    }
  }
}

#ifndef EDL_HEADER_ONLY
template void adam::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                          std::uint64_t) const;
template void adam::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                          std::uint64_t) const;
#endif

}  // namespace edl
