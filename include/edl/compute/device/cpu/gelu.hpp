// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>

#include "edl/compute/device/cpu/exponential.hpp"

namespace edl::detail {

/// Φ(x), and exp(−x²/2).
template <class V>
struct normal_parts {
  V below, bell;
};

template <std::floating_point T>
normal_parts<T> normal_at(T x) {
  return {T(0.5) * std::erfc(-x * T(0.70710678118654752)), std::exp(T(-0.5) * x * x)};
}

/// The same, lane by lane.
template <class V>
  requires(!std::floating_point<V>)
normal_parts<V> normal_at(V const& x) {
  using T = typename lane<V>::type;
  if constexpr (sizeof(T) == 8) {
    normal_parts<V> all;
    for (std::size_t i = 0; i < lanes<T>::count; ++i) {
      auto const one = normal_at<T>(x[i]);
      all.below[i] = one.below, all.bell[i] = one.bell;
    }
    return all;
  } else {
    V const bell = exp_below(V(x * x * -0.5f));
    // 1 − Φ(|x|) within 7.5e-8: Hastings' formula for erfc (Abramowitz and Stegun, 7.1.26).
    V const far = x < 0.0f ? -x : x, t = 1.0f / (1.0f + far * 0.231641888f);
    V tail = t * 1.061405429f - 1.453152027f;
    tail = tail * t + 1.421413741f;
    tail = tail * t - 0.284496736f;
    tail = tail * t + 0.254829592f;
    tail = tail * t * bell * 0.5f;
    return {x > 0.0f ? 1.0f - tail : tail, bell};
  }
}

template <class V>
V gelu(V const& x) {
  return x * normal_at(x).below;
}

/// Its derivative.
template <class V>
V gelu_slope(V const& x) {
  auto const at = normal_at(x);
  return at.below + x * at.bell * typename lane<V>::type(0.39894228040143268);  // 1 / √(2π)
}

}  // namespace edl::detail
