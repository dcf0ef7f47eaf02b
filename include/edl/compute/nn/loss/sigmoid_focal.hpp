// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Cross entropy of sigmoid(outputs) that counts less where the answer is right already: −a·(1 − p)^gamma·log
/// p for each output element, averaged over them. p is the probability of the label, 0 or 1. a is `alpha` for
/// the label 1, and 1 − alpha for the label 0. (Lin et al., "Focal loss for dense object detection", ICCV
/// 2017.) With gamma = 0 and alpha = 1/2 it is half of `sigmoid_cross_entropy`.
struct sigmoid_focal {
  float gamma = 2;      ///< not negative
  float alpha = 0.25f;  ///< in [0, 1]

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l == 0 || l == 1; }
  constexpr bool options_fit(shape) const { return gamma >= 0 && alpha >= 0 && alpha <= 1; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const scale = T(1 / double(n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      bool const yes = truth[i] > 0.5f;
      T const m = yes ? outputs[i] : -outputs[i];  // the logit of the label's probability
      T const small = std::exp(-std::abs(m)), all = 1 / (1 + small);
      T const p = m > 0 ? all : small * all, wrong = m > 0 ? small * all : all;
      T const surprise = (m > 0 ? 0 : -m) + std::log1p(small);  // −log p
      T const share = yes ? T(alpha) : 1 - T(alpha);
      T const focus = share * (gamma == 2 ? wrong * wrong : std::pow(wrong, T(gamma)));
      total += double(focus) * double(surprise);
      if (gradients.empty()) continue;
      T const slope = focus * (T(gamma) * p * surprise + wrong) * scale;
      gradients[i] = yes ? -slope : slope;
    }
    return n > 0 ? total / double(n) : 0;
  }
};

}  // namespace edl::nn
