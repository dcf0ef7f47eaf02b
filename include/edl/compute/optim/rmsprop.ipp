// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

#include "edl/compute/optim/rmsprop.hpp"

namespace edl {
namespace detail {

template <bool Centered, bool Momentum, class T>
void rmsprop_step(rmsprop const& o, std::span<T> weights, view<T> gradients,
                  std::span<std::span<T> const> slots, T rate) {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const v = slots[0].data();
  T* __restrict const a = Centered ? slots[1].data() : nullptr;
  T* __restrict const b = Momentum ? slots[Centered ? 2 : 1].data() : nullptr;
  T const rho = T(o.rho), rest = 1 - rho, mu = T(o.momentum), eps = T(o.epsilon),
          keep = 1 - rate * T(o.weight_decay);
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = rho * v[i] + rest * (g[i] * g[i]);
    T spread = v[i];
    if constexpr (Centered) {
      a[i] = rho * a[i] + rest * g[i];
      spread -= a[i] * a[i];
      spread = spread < 0 ? T(0) : spread;  // by rounding
    }
    T u = g[i] / (std::sqrt(spread) + eps);
    if constexpr (Momentum) u = b[i] = mu * b[i] + u;
    w[i] = keep * w[i] - rate * u;
  }
}

}  // namespace detail

template <std::floating_point T>
void rmsprop::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                    std::uint64_t) const {
  if (centered && momentum != 0)
    detail::rmsprop_step<true, true>(*this, weights, gradients, slots, rate);
  else if (centered)
    detail::rmsprop_step<true, false>(*this, weights, gradients, slots, rate);
  else if (momentum != 0)
    detail::rmsprop_step<false, true>(*this, weights, gradients, slots, rate);
  else
    detail::rmsprop_step<false, false>(*this, weights, gradients, slots, rate);
}

#ifndef EDL_HEADER_ONLY
template void rmsprop::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                             std::uint64_t) const;
template void rmsprop::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                             std::uint64_t) const;
#endif

}  // namespace edl
