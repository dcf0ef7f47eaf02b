// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include "edl/compute/device/cpu/exponential.hpp"
#include "edl/compute/device/cpu/lanes.hpp"

namespace edl::detail {

/// exp(z). In lanes of floats within 2e-7 of it, relatively; z counts as −87 below and as 88 above.
template <std::floating_point T>
T exponential(T z) {
  return std::exp(z);
}

template <class V>
  requires(!std::floating_point<V>)
V exponential(V const& of) {
  using T = typename lane<V>::type;
  if constexpr (sizeof(T) == 8) {
    return lane_by_lane(of, [](T each) { return std::exp(each); });
  } else {
    exp_parts<V> const parts = split_exp(V(of > 88.0f ? V{} + 88.0f : of));
    return parts.scale + parts.scale * parts.rest;
  }
}

/// 1 / (1 + exp(−x)).
template <class V>
V logistic(V const& x) {
  return 1 / (1 + exponential(V(-x)));
}

/// tanh(x). In lanes of floats within 2e-7 of it.
template <std::floating_point T>
T hyperbolic_tangent(T x) {
  return std::tanh(x);
}

template <class V>
  requires(!std::floating_point<V>)
V hyperbolic_tangent(V const& x) {
  using T = typename lane<V>::type;
  if constexpr (sizeof(T) == 8) {
    return lane_by_lane(x, [](T each) { return std::tanh(each); });
  } else {
    V const far = 1 - 2 / (1 + exponential(V(x + x)));
    // Near 0 the difference above cancels: Cephes' polynomial (S. Moshier, tanhf).
    V const z = x * x;
    V p = z * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    V const near = p * z * x + x;
    return z < 0.390625f ? near : far;
  }
}

/// Σ part(first index) over [0, n), where part gives a vector, or a number for what is left over.
template <class T, class Part>
T sum_by_lanes(std::size_t n, Part&& part) {
  using vector = typename lanes<T>::type;
  constexpr std::size_t c = lanes<T>::count;
  vector a{}, b{};
  std::size_t i = 0;
  for (; i + 2 * c <= n; i += 2 * c) {
    a += part.template operator()<vector>(i);
    b += part.template operator()<vector>(i + c);
  }
  for (; i + c <= n; i += c) a += part.template operator()<vector>(i);
  a += b;
  T sum = 0;
  for (std::size_t k = 0; k < c; ++k) sum += a[k];
  for (; i < n; ++i) sum += part.template operator()<T>(i);
  return sum;
}

}  // namespace edl::detail
