// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// max(0, margin − s·x) for each output element x, averaged over them; s is 1 for the label 1, and −1 for the
/// label 0. It is the loss of a support vector machine (Cortes and Vapnik, 1995). With `squared` it is the
/// square of that. An output above 0 means yes, as it does for `sigmoid_cross_entropy`.
struct hinge {
  float margin = 1;  ///< above 0
  bool squared = false;

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l == 0 || l == 1; }
  constexpr bool options_fit(shape) const { return margin > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(1 / double(n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      T const sign = truth[i] > 0.5f ? T(1) : T(-1), gap = T(margin) - sign * outputs[i];
      T const lack = gap < 0 ? T(0) : gap;  // a NaN stays
      total += squared ? double(lack) * double(lack) : double(lack);
      if (gradients.empty()) continue;
      T const slope = squared ? 2 * lack : lack > 0 ? T(1) : lack;
      gradients[i] = -sign * slope * scale;
    }
    return n > 0 ? total / double(n) : 0;
  }
};

}  // namespace edl::nn
