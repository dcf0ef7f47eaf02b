// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "edl/device/cpu/lanes.hpp"

namespace edl::detail {

/// f of each lane by itself.
template <class V, class F>
V lane_by_lane(V x, F&& f) {
  for (std::size_t i = 0; i < lanes<typename lane<V>::type>::count; ++i) x[i] = f(x[i]);
  return x;
}

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
    typedef std::int32_t whole __attribute__((vector_size(sizeof(V))));
    // exp(z) = 2^n · exp(r) with |r| ≤ ln 2 / 2, whose series ends at r⁷ / 7!.
    V z = of < -87.0f ? V{} - 87.0f : of;
    z = z > 88.0f ? V{} + 88.0f : z;
    V const n = (z * 1.44269504f + 12582912.0f) - 12582912.0f;  // adding 1.5 · 2²³ rounds to a whole number
    V const r = z - n * 0.693359375f + n * 2.12194440e-4f;
    V p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    whole const scale = (__builtin_convertvector(n, whole) + 127) << 23;
    return p * std::bit_cast<V>(scale);
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
