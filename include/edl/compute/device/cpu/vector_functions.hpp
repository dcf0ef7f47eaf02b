// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

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

/// log(x), within 2e-7 of it; of 0 it is −∞, below a NaN. In lanes of floats what is not normal counts as 0.
template <std::floating_point T>
T logarithm(T x) {
  return std::log(x);
}

template <class V>
  requires(!std::floating_point<V>)
V logarithm(V const& x) {
  using T = typename lane<V>::type;
  if constexpr (sizeof(T) == 8) {
    return lane_by_lane(x, [](T each) { return std::log(each); });
  } else {
    typedef std::int32_t whole __attribute__((vector_size(sizeof(V))));
    // x = 2ⁿ · m with m from √½ to √2, and Cephes' polynomial for log m (S. Moshier, logf).
    auto const bits = std::bit_cast<whole>(x);
    whole n = ((bits >> 23) & 0xff) - 126;
    V m = std::bit_cast<V>((bits & 0x007fffff) | 0x3f000000);
    whole const low = m < 0.707106781f;
    n += low;  // −1 where it holds
    m = (low ? m + m : m) - 1.0f;
    V const e = __builtin_convertvector(n, V), z = m * m;
    V p = m * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    V const y = m + (p * m * z - e * 2.12194440e-4f - z * 0.5f) + e * 0.693359375f;
    constexpr T infinite = std::numeric_limits<T>::infinity();
    V const edge = x < 0.0f ? V{} + std::numeric_limits<T>::quiet_NaN() : V{} - infinite;
    return x >= std::numeric_limits<T>::min() ? (x < infinite ? y : x) : (x == x ? edge : x);
  }
}

/// exp(z) − 1. In lanes of floats within 2e-7 of it; z counts as 88 above.
template <std::floating_point T>
T exponential_less_1(T z) {
  return std::expm1(z);
}

template <class V>
  requires(!std::floating_point<V>)
V exponential_less_1(V const& z) {
  return expm1_below(V(z > 88 ? V{} + 88 : z));
}

/// √x.
template <std::floating_point T>
T square_root(T x) {
  return std::sqrt(x);
}

template <class V>
  requires(!std::floating_point<V>)
V square_root(V const& x) {
#ifdef __AVX__
  if constexpr (sizeof(x) == 32 && sizeof(x[0]) == 4)
    return std::bit_cast<V>(__builtin_ia32_sqrtps256(std::bit_cast<eight_floats>(x)));
  else
#endif
    return lane_by_lane(x, [](auto each) { return std::sqrt(each); });
}

/// a to the power of b, as std::pow: of a negative a for a whole b, and a NaN for another. In lanes of floats
/// its relative error grows with |b · log|a||, to 1e-5; what is beyond exp(88) is infinite.
template <std::floating_point T>
T power(T a, T b) {
  return std::pow(a, b);
}

template <class V>
  requires(!std::floating_point<V>)
V power(V const& a, V const& b) {
  using T = typename lane<V>::type;
  if constexpr (sizeof(T) == 8) {
    V y = a;
    for (std::size_t i = 0; i < lanes<T>::count; ++i) y[i] = std::pow(a[i], b[i]);
    return y;
  } else {
    typedef std::int32_t whole __attribute__((vector_size(sizeof(V))));
    V const z = b * logarithm(V(a < 0.0f ? -a : a));
    V const y = z < -87.0f ? V{} : (z > 88.0f ? V{} + std::numeric_limits<T>::infinity() : exponential(z));
    // From 2²⁴ on every float is even.
    whole const large = (b < 0.0f ? -b : b) >= 16777216.0f;
    whole const n = __builtin_convertvector(V(large ? V{} : b), whole);
    V const odd = (n & 1) != 0 ? V(-y) : y;
    whole const is_whole = large | (__builtin_convertvector(n, V) == b);
    constexpr T infinite = std::numeric_limits<T>::infinity();
    whole const finite = (a < 0.0f) & (a > -infinite);  // not so for −0 and −∞, which have roots
    V const of_negative = is_whole ? odd : (finite ? V{} + std::numeric_limits<T>::quiet_NaN() : y);
    return b == 0.0f ? V{} + 1.0f : (std::bit_cast<whole>(a) < 0 ? of_negative : y);
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
