// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/compute/nn/loss/class_weights.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Cross entropy of softmax(outputs) with one class per sample; the outputs are logits. The true distribution
/// is q_k = (1 − s)·[k is the label] + s / classes with the label smoothing s in [0, 1). (Szegedy et al.,
/// "Rethinking the inception architecture", CVPR 2016, section 7.)
struct softmax_cross_entropy {
  float label_smoothing = 0;
  nn::class_weights class_weights{};  ///< with any, it is computed on the host

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape) { return 1; }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< of one the loss is always 0
  static constexpr bool valid(label l, shape output) { return l >= 0 && std::size_t(l) < output.size(); }

  constexpr bool options_fit(shape output) const {
    return label_smoothing >= 0 && label_smoothing < 1 && class_weights.fit(output.size());
  }
  constexpr bool on_host() const { return class_weights.count() > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const classes = output.size();
    double const smooth = double(label_smoothing), spread = smooth / double(classes);
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      T largest = x[0];
      for (T each : x) largest = each > largest ? each : largest;
      double sum = 0, below = 0;  // of exp(x − largest), of x − largest
      for (T each : x) {
        sum += double(std::exp(each - largest));
        below += double(each - largest);
      }
      auto const y = std::size_t(truth[i]);
      double loss = std::log(sum) - (1 - smooth) * double(x[y] - largest);
      if (smooth != 0) loss -= spread * below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      double const weight = double(class_weights[y]);
      total += weight * loss;
      if (gradients.empty()) continue;
      auto const dx = gradients.subspan(i * classes, classes);
      T const scale = T(weight / (sum * batch)), uniform = T(weight * spread / batch);
      for (std::size_t k = 0; k < classes; ++k) dx[k] = std::exp(x[k] - largest) * scale - uniform;
      dx[y] -= T(weight * (1 - smooth) / batch);
    }
    return batch > 0 ? total / batch : 0;
  }
};

}  // namespace edl::nn
