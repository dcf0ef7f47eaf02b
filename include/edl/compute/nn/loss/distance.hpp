// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/compute/nn/expression/loss.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// The square of outputs − labels, averaged over the output elements.
struct mean_squared_error {
  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l - l == 0; }  // neither infinite nor NaN

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(2 / double(n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      T const off = outputs[i] - T(truth[i]);
      total += double(off) * double(off);
      if (!gradients.empty()) gradients[i] = off * scale;
    }
    return n > 0 ? total / double(n) : 0;
  }
};

/// Half the square of d = output − label up to |d| = delta, and delta · (|d| − delta / 2) beyond. It is
/// averaged over the output elements. (Huber, "Robust estimation of a location parameter", 1964.) The
/// gradient of outliers is bounded.
struct huber {
  float delta = 1;  ///< above 0

  constexpr bool options_fit(shape) const { return delta > 0; }
  constexpr auto loss(auto output, auto label) const {
    auto const off = output - label, far = abs(off);
    return mean(where(far > delta, delta * (far - 0.5 * delta), 0.5 * square(off)));  // a NaN stays
  }
};

/// The outputs of a sample are a point, which should be nearer to points with its label than to others, by a
/// margin. Each sample of the minibatch is an anchor: max(0, margin + d(anchor, the farthest of its label) −
/// d(anchor, the nearest of another label)), with Euclidean distances. It is the "batch hard" form of
/// Hermans, Beyer and Leibe, "In defense of the triplet loss for person re-identification", 2017. The loss is
/// the mean over the anchors that have both; a minibatch without any has a loss of 0. So records with one
/// label must meet in minibatches. A label is any number from 0, and no metric but `mean_loss` uses it. Its
/// time is quadratic in the minibatch.
struct triplet {
  float margin = 0.2f;  ///< above 0

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr bool own_labels = true, whole_batch = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool valid(label l, shape) { return l >= 0; }
  constexpr bool options_fit(shape) const { return margin > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = output.size(), rows = std::size_t(batch);
    auto const same = [&](std::size_t i, std::size_t j) { return truth[i] == truth[j]; };
    std::size_t anchors = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      auto const alike = std::size_t(std::ranges::count(truth.first(rows), truth[i]));
      anchors += alike > 1 && alike < rows;
    }
    std::ranges::fill(gradients, T(0));
    double total = 0;
    for (std::size_t i = 0; i < rows && anchors > 0; ++i) {
      double far = -1, near = -1;  // squares of distances
      std::size_t far_at = i, near_at = i;
      for (std::size_t j = 0; j < rows; ++j) {
        if (j == i) continue;
        double const d = square(outputs.data() + i * n, outputs.data() + j * n, n);
        if (same(i, j) ? !(d <= far) : near < 0 || !(d >= near))
          (same(i, j) ? far : near) = d, (same(i, j) ? far_at : near_at) = j;
      }
      if (far_at == i || near_at == i) continue;
      double const positive = std::sqrt(far), negative = std::sqrt(near);
      double const lack = double(margin) + positive - negative;
      if (lack <= 0) continue;  // a NaN continues
      total += lack;
      if (gradients.empty()) continue;
      pull(i, far_at, positive, 1 / double(anchors), n, outputs, gradients);
      pull(i, near_at, negative, -1 / double(anchors), n, outputs, gradients);
    }
    return anchors > 0 ? total / double(anchors) : 0;
  }

 private:
  template <class T>
  static double square(T const* a, T const* b, std::size_t n) {
    double parts[4]{};
    std::size_t k = 0;
    for (; k + 4 <= n; k += 4)
      for (std::size_t l = 0; l < 4; ++l)
        parts[l] += double(a[k + l] - b[k + l]) * double(a[k + l] - b[k + l]);
    for (; k < n; ++k) parts[0] += double(a[k] - b[k]) * double(a[k] - b[k]);
    return parts[0] + parts[1] + (parts[2] + parts[3]);
  }

  /// Adds the gradient of share · d(a, b); no gradient for two equal points.
  template <class T>
  static void pull(std::size_t a, std::size_t b, double distance, double share, std::size_t n, view<T> x,
                   std::span<T> gradients) {
    if (distance == 0) return;
    T const by = T(share / distance);
    for (std::size_t k = 0; k < n; ++k) {
      T const d = (x[a * n + k] - x[b * n + k]) * by;
      gradients[a * n + k] += d;
      gradients[b * n + k] -= d;
    }
  }
};

}  // namespace edl::nn
