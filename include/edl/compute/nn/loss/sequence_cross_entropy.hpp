// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

/// `softmax_cross_entropy` at every place of a sample: of a text, an output of (1, length, classes), or of a
/// picture, (height, width, classes). The channels are logits, and each place has a label, row by row. A
/// place whose label is `ignored`, −1, does not count, in metrics either: that is for what fills up short
/// records. The loss is the mean over the places of the minibatch that count, and 0 where none does.
struct sequence_cross_entropy {
  float label_smoothing = 0;  ///< in [0, 1)
  nn::class_weights class_weights{};

  using label = std::int32_t;
  static constexpr label ignored = -1;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape output) {
    return std::size_t(output.height) * std::size_t(output.width);
  }
  static constexpr bool valid(label l, shape output) { return l >= ignored && l < output.channels; }
  /// Of one class the loss is always 0; of one place it is `softmax_cross_entropy`.
  static constexpr bool fits(shape output) { return output.channels > 1 && labels(output) > 1; }
  constexpr bool options_fit(shape output) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(std::size_t(output.channels));
  }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    auto const classes = std::size_t(output.channels), places = std::size_t(batch) * labels(output);
    auto const counted = double(places) - double(std::ranges::count(truth.first(places), ignored));
    double const smooth = double(label_smoothing), spread = smooth / double(classes);
    double total = 0;
    for (std::size_t i = 0; i < places; ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const dx = gradients.empty() ? gradients : gradients.subspan(i * classes, classes);
      if (truth[i] == ignored) {
        std::ranges::fill(dx, T(0));
        continue;
      }
      auto const y = std::size_t(truth[i]);
      double const weight = double(class_weights[y]);
      auto const sums = detail::sums_of_logits(x);
      double loss = std::log(sums.exps) - (1 - smooth) * double(x[y] - sums.largest);
      if (smooth != 0) loss -= spread * sums.below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      total += weight * loss;
      if (dx.empty()) continue;
      detail::scaled_exps(x, sums.largest, T(weight / (sums.exps * counted)), T(weight * spread / counted),
                          dx);
      dx[y] -= T(weight * (1 - smooth) / counted);
    }
    return counted > 0 ? total / counted : 0;
  }
};

}  // namespace edl::nn
