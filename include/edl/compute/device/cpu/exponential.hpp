// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "edl/compute/device/cpu/lanes.hpp"

namespace edl::detail {

// Functions of vectors, lane by lane. Doubles go through the library of C, one by one: nothing that is
// trained is one.

/// 2ⁿ, and exp(r) − 1 with |r| ≤ ln 2 / 2, of a z that is 2ⁿ · exp(r).
template <class V>
struct exp_parts {
  V scale, rest;
};

/// Of a z from −87 to 88; a lower one counts as −87. The series ends at r⁷ / 7!.
template <class V>
exp_parts<V> split_exp(V z) {
  typedef std::int32_t whole __attribute__((vector_size(sizeof(V))));
  z = z < -87.0f ? V{} - 87.0f : z;
  V const n = (z * 1.44269504f + 12582912.0f) - 12582912.0f;  // adding 1.5 · 2²³ rounds to a whole number
  V const r = z - n * 0.693359375f + n * 2.12194440e-4f;
  V p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  whole const scale = (__builtin_convertvector(n, whole) + 127) << 23;
  return {std::bit_cast<V>(scale), p * r};
}

template <class V, class F>
V lane_by_lane(V const& x, F&& f) {
  V y = x;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(x[0]); ++i) y[i] = f(x[i]);
  return y;
}

/// exp(z) for a z that is not above 0, within 2e-7 of it; vectors of single precision give 0 below −87. A NaN
/// stays.
template <std::floating_point T>
T exp_below(T z) {
  return std::exp(z);
}

template <class V>
  requires(!std::floating_point<V>)
V exp_below(V const& z) {
  if constexpr (sizeof(z[0]) == 8) {
    return lane_by_lane(z, [](double x) { return std::exp(x); });
  } else {
    auto const [scale, rest] = split_exp(z);
    return z < -87.0f ? V{} : (rest + 1.0f) * scale;
  }
}

/// exp(z) − 1 for a z that is not above 0, within 2e-7 of it, near 0, too. A NaN stays.
template <class V>
V expm1_below(V const& z) {
  if constexpr (sizeof(z[0]) == 8) {
    return lane_by_lane(z, [](double x) { return std::expm1(x); });
  } else {
    auto const [scale, rest] = split_exp(z);
    return rest * scale + (scale - 1.0f);
  }
}

/// log(1 + e) for an e from 0 to 1, within 2e-7 of it. A NaN stays.
template <std::floating_point T>
T log1p_share(T e) {
  return std::log1p(e);
}

template <class V>
  requires(!std::floating_point<V>)
V log1p_share(V const& e) {
  if constexpr (sizeof(e[0]) == 8) {
    return lane_by_lane(e, [](double x) { return std::log1p(x); });
  } else {
    // 2 artanh(t), whose series ends at t¹³ / 13; t is at most 1/3.
    V const t = e / (e + 2.0f), q = t * t;
    V p = q * (1.0f / 13) + 1.0f / 11;
    p = p * q + 1.0f / 9;
    p = p * q + 1.0f / 7;
    p = p * q + 1.0f / 5;
    p = p * q + 1.0f / 3;
    p = p * q + 1.0f;
    return p * t * 2.0f;
  }
}

/// σ(x) = 1 / (1 + exp(−x)), and 1 − σ(x), neither of which is rounded to 0 or 1 too early.
template <class V>
struct sigmoid_parts {
  V above, below;
};

template <class V>
sigmoid_parts<V> sigmoid_at(V const& x) {
  using T = typename lane<V>::type;
  V const far = x < T(0) ? x : -x, e = exp_below(far), all = T(1) / (e + T(1)), small = e * all;
  return {x > T(0) ? all : small, x > T(0) ? small : all};
}

/// y = f(x) for n numbers, by vectors. The last ones are a vector, too, so that no result depends on where
/// its number stands.
template <class T, class F>
void by_vectors(std::size_t n, T const* x, T* y, F const& f) {
  auto const whole = [&f](std::size_t count, T const* from, T* to) {
    by_lanes<T>(count, [&]<class V>(std::size_t i) {
      if constexpr (!std::floating_point<V>) store<V>(to + i, f(V(load<V>(from + i))));
    });
  };
  std::size_t const rest = n % lanes<T>::count;
  whole(n - rest, x, y);
  if (rest == 0) return;
  std::array<T, lanes<T>::count> last{};
  std::copy_n(x + (n - rest), rest, last.begin());
  whole(last.size(), last.data(), last.data());
  std::copy_n(last.begin(), rest, y + (n - rest));
}

/// x · σ(x).
template <class V>
V silu(V const& x) {
  return x * sigmoid_at(x).above;
}

/// Its derivative.
template <class V>
V silu_slope(V const& x) {
  auto const s = sigmoid_at(x);
  return s.above * (x * s.below + typename lane<V>::type(1));
}

/// x where it is positive, alpha · (exp(x) − 1) elsewhere.
template <class V>
V elu(V const& x, typename lane<V>::type alpha) {
  using T = typename lane<V>::type;
  V const below = expm1_below(x > T(0) ? V{} : x);
  return x > T(0) ? x : below * alpha;
}

/// Its derivative, of its result.
template <class V>
V elu_slope(V const& y, typename lane<V>::type alpha) {
  using T = typename lane<V>::type;
  V const below = y + alpha;  // not in the choice, where it would be a jump
  return y > T(0) ? V{} + T(1) : below;
}

/// log(1 + exp(x)), without overflow.
template <class V>
V softplus(V const& x) {
  using T = typename lane<V>::type;
  V const far = x < T(0) ? x : -x;
  return (x > T(0) ? x : V{}) + log1p_share(V(exp_below(far)));
}

}  // namespace edl::detail
