// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/optim/sgd.hpp"

namespace edl {

template <std::floating_point T>
void sgd::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                std::uint64_t) const {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T const keep = 1 - rate * T(weight_decay), mu = T(momentum);
  if (momentum == 0) {
    for (std::size_t i = 0; i < n; ++i) w[i] = keep * w[i] - rate * g[i];
    return;
  }
  T* __restrict const v = slots[0].data();
  if (nesterov) {
    for (std::size_t i = 0; i < n; ++i) {
      v[i] = mu * v[i] + g[i];
      w[i] = keep * w[i] - rate * (g[i] + mu * v[i]);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      v[i] = mu * v[i] + g[i];
      w[i] = keep * w[i] - rate * v[i];
    }
  }
}

#ifndef EDL_HEADER_ONLY
template void sgd::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                         std::uint64_t) const;
template void sgd::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                         std::uint64_t) const;
#endif

}  // namespace edl
