// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/compute/nn/loss/class_weights.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Cross entropy of sigmoid(outputs) with one probability per output element, averaged over the elements; the
/// outputs are logits. Per element max(x, 0) − x·z + log(1 + exp(−|x|)), which is −z·log σ(x) − (1 − z)·log(1
/// − σ(x)) without overflow. With the label smoothing s, a label z counts as (1 − s)·z + s / 2. Two class
/// weights, {of no, of yes}, multiply an element's loss; between 0 and 1 they are mixed as the label says.
struct sigmoid_cross_entropy {
  float label_smoothing = 0;          ///< in [0, 1)
  nn::class_weights class_weights{};  ///< with any, it is computed on the host

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l >= 0 && l <= 1; }

  constexpr bool options_fit(shape) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(2);
  }
  constexpr bool on_host() const { return class_weights.count() > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(1 / double(n)), keep = T(1 - label_smoothing), shift = T(label_smoothing / 2);
    T const no = T(class_weights[0]), more = T(class_weights[1]) - no;
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      T const x = outputs[i], z = T(truth[i]) * keep + shift, weight = no + more * T(truth[i]);
      T const small = std::exp(-std::abs(x));
      total += double(weight * ((x > 0 ? x : 0) - x * z + std::log1p(small)));
      if (!gradients.empty()) gradients[i] = ((x > 0 ? 1 : small) / (1 + small) - z) * (weight * scale);
    }
    return n > 0 ? total / double(n) : 0;
  }
};

}  // namespace edl::nn
