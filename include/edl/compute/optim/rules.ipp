// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "edl/compute/optim/rules.hpp"

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

namespace detail {

/// Sums of squares, side by side in a fixed order, so that they are computed several at a time.
struct square_sums {
  static constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};

  double norm() const {
    double sum = 0;
    for (double const x : sums) sum += x;
    return std::sqrt(sum);
  }
};

/// LAMB's direction, of the moments as they are.
template <std::floating_point T>
struct lamb_direction {
  T c1, c2, epsilon, decay;

  lamb_direction(lamb const& o, std::uint64_t step)
      : c1(T(1 / (1 - std::pow(double(T(o.beta_1)), double(step) + 1)))),
        c2(T(1 / (1 - std::pow(double(T(o.beta_2)), double(step) + 1)))),
        epsilon(T(o.epsilon)),
        decay(T(o.weight_decay)) {}

  T operator()(T m, T v, T w) const { return c1 * m / (std::sqrt(c2 * v) + epsilon) + decay * w; }
};

}  // namespace detail

template <std::floating_point T>
void lamb::apply_whole(variable const&, std::span<T> weights, view<T> gradients,
                       std::span<std::span<T> const> slots, T rate, std::uint64_t step) const {
  using detail::square_sums;
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const m = slots[0].data();
  T* __restrict const v = slots[1].data();
  T const b1 = T(beta_1), b2 = T(beta_2), c1 = 1 - b1, c2 = 1 - b2;
  detail::lamb_direction<T> const direction(*this, step);
  square_sums of_w, of_u;
  auto const add = [&](std::size_t i, std::size_t lane) {
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
    auto const u = double(direction(m[i], v[i], w[i]));
    of_w.sums[lane] += double(w[i]) * double(w[i]);
    of_u.sums[lane] += u * u;
  };
  std::size_t i = 0;
  for (; i + square_sums::lanes <= n; i += square_sums::lanes)
    for (std::size_t lane = 0; lane < square_sums::lanes; ++lane) add(i + lane, lane);
  for (; i < n; ++i) add(i, 0);
  double const size = of_w.norm(), length = of_u.norm();
  T const scaled = rate * T(size > 0 && length > 0 ? size / length : 1);
  for (i = 0; i < n; ++i) w[i] = w[i] - scaled * direction(m[i], v[i], w[i]);
}

template <std::floating_point T>
void lamb::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                 std::uint64_t step) const {
  std::size_t const n = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const m = slots[0].data();
  T* __restrict const v = slots[1].data();
  T const b1 = T(beta_1), b2 = T(beta_2), c1 = 1 - b1, c2 = 1 - b2;
  detail::lamb_direction<T> const direction(*this, step);
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
    w[i] = w[i] - rate * direction(m[i], v[i], w[i]);
  }
}

#ifndef EDL_HEADER_ONLY
template void lamb::apply_whole(variable const&, std::span<float>, view<float>,
                                std::span<std::span<float> const>, float, std::uint64_t) const;
template void lamb::apply_whole(variable const&, std::span<double>, view<double>,
                                std::span<std::span<double> const>, double, std::uint64_t) const;
template void lamb::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                          std::uint64_t) const;
template void lamb::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                          std::uint64_t) const;
#endif

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

template <std::floating_point T>
void ftrl::apply(std::span<T> weights, view<T> gradients, std::span<std::span<T> const> slots, T rate,
                 std::uint64_t) const {
  if (rate == 0) return;  // by which the step would divide
  std::size_t const count = weights.size();
  T* __restrict const w = weights.data();
  T const* __restrict const g = gradients.data();
  T* __restrict const n = slots[0].data();
  T* __restrict const z = slots[1].data();
  T const sparse = T(l1), smooth = 2 * T(l2), b = T(beta);
  for (std::size_t i = 0; i < count; ++i) {
    T const before = std::sqrt(n[i]);
    n[i] += g[i] * g[i];
    T const root = std::sqrt(n[i]), curve = (b + root) / rate + smooth;
    z[i] += g[i] - (root - before) / rate * w[i];
    // The square of a tiny gradient is 0, and the curve with it. A NaN stays.
    bool const none = std::abs(z[i]) <= sparse || curve == 0;
    w[i] = none ? 0 : (std::copysign(sparse, z[i]) - z[i]) / curve;
  }
}

#ifndef EDL_HEADER_ONLY
template void ftrl::apply(std::span<float>, view<float>, std::span<std::span<float> const>, float,
                          std::uint64_t) const;
template void ftrl::apply(std::span<double>, view<double>, std::span<std::span<double> const>, double,
                          std::uint64_t) const;
#endif

}  // namespace edl
