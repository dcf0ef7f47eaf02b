// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/optim/lion.hpp"

namespace edl {

template <std::floating_point T>
void lion::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                 std::uint64_t) const {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const m = slots[0].data();
  T const b1 = T(beta_1), b2 = T(beta_2), c1 = 1 - b1, c2 = 1 - b2, keep = 1 - rate * T(weight_decay);
  for (std::size_t i = 0; i < n; ++i) {
    T const c = b1 * m[i] + c1 * g[i];
    T const sign = c > 0 ? T(1) : c < 0 ? T(-1) : c;  // a NaN stays
    w[i] = keep * w[i] - rate * sign;
    m[i] = b2 * m[i] + c2 * g[i];
  }
}

#ifndef EDL_HEADER_ONLY
template void lion::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                          std::uint64_t) const;
template void lion::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                          std::uint64_t) const;
#endif

}  // namespace edl
