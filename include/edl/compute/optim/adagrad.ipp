// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

#include "edl/compute/optim/adagrad.hpp"

namespace edl {

template <std::floating_point T>
void adagrad::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                    std::uint64_t) const {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const a = slots[0].data();
  T const keep = 1 - rate * T(weight_decay), eps = T(epsilon);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    w[i] = keep * w[i] - rate * g[i] / (std::sqrt(a[i]) + eps);
  }
}

#ifndef EDL_HEADER_ONLY
template void adagrad::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                             std::uint64_t) const;
template void adagrad::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                             std::uint64_t) const;
#endif

}  // namespace edl
