// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/compute/nn/loss/class_weights.hpp"
#include "edl/compute/nn/loss/logits.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Cross entropy of softmax(outputs) that counts less where the answer is right already: −(1 − p)^gamma·log
/// p. p is the probability of the label, one class per sample. (Lin et al., "Focal loss for dense object
/// detection", ICCV 2017; its alpha is `class_weights`.) With gamma = 0 it is `softmax_cross_entropy`.
struct softmax_focal {
  float gamma = 2;  ///< not negative
  nn::class_weights class_weights{};

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool valid(label l, shape output) { return l >= 0 && std::size_t(l) < output.size(); }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< of one the loss is always 0
  constexpr bool options_fit(shape output) const { return gamma >= 0 && class_weights.fit(output.size()); }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const classes = output.size();
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const y = std::size_t(truth[i]);
      auto const sums = detail::sums_of_logits(x);
      double const surprise = std::log(sums.exps) - double(x[y] - sums.largest);  // −log p
      double const p = std::exp(-surprise), wrong = -std::expm1(-surprise);
      double const weight = double(class_weights[y]), focus = weight * std::pow(wrong, double(gamma));
      total += focus * surprise;
      if (gradients.empty()) continue;
      // By −log p: gamma · wrong^(gamma − 1) · p · surprise + wrong^gamma, where surprise / wrong goes to 1.
      double const ratio = wrong > 0 ? surprise / wrong : 1;
      double const slope = focus * (p > 0 ? double(gamma) * p * ratio + 1 : 1) / batch;
      auto const dx = gradients.subspan(i * classes, classes);
      detail::scaled_exps(x, sums.largest, T(slope / sums.exps), T(0), dx);
      dx[y] -= T(slope);
    }
    return batch > 0 ? total / batch : 0;
  }
};

}  // namespace edl::nn
