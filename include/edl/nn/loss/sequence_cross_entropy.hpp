// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Cross entropy of softmax(outputs) with one class for each place of a sample. It is averaged over the
/// places of the minibatch. The channels of an output are logits. A place whose label is `ignored` does not
/// count. The true distribution is smoothed as that of `softmax_cross_entropy`.
struct sequence_cross_entropy {
  float label_smoothing = 0;
  std::int32_t ignored = -1;

  using label = std::int32_t;
  static constexpr bool class_labels = true;
  static constexpr std::size_t labels(shape output) {
    return std::size_t(output.height) * std::size_t(output.width);
  }
  /// Whether a label is a class, or −1, which stands for none.
  static constexpr bool valid(label l, shape output) { return l >= -1 && l < output.channels; }

  /// See `loss_function`. Every label must be `valid`. 0 where no place counts.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    auto const classes = std::size_t(output.channels);
    std::size_t const places = std::size_t(batch) * labels(output);
    std::size_t count = 0;
    for (std::size_t i = 0; i < places; ++i) count += counts(truth[i]);
    double const smooth = double(label_smoothing), spread = smooth / double(classes);
    double total = 0;
    for (std::size_t i = 0; i < places; ++i) {
      view<T> const x = outputs.subspan(i * classes, classes);
      auto const dx = gradients.empty() ? gradients : gradients.subspan(i * classes, classes);
      if (!counts(truth[i])) {
        for (T& d : dx) d = 0;
        continue;
      }
      T largest = x[0];
      for (T each : x) largest = each > largest ? each : largest;
      double sum = 0, below = 0;  // of exp(x − largest), of x − largest
      for (std::size_t k = 0; k < classes; ++k) {
        T const share = std::exp(x[k] - largest);
        sum += double(share);
        below += double(x[k] - largest);
        if (!dx.empty()) dx[k] = share;
      }
      auto const y = std::size_t(truth[i]);
      total += std::log(sum) - (1 - smooth) * double(x[y] - largest);
      if (smooth != 0) total -= spread * below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      if (dx.empty()) continue;
      T const scale = T(1 / (sum * double(count))), uniform = T(spread / double(count));
      for (T& d : dx) d = d * scale - uniform;
      dx[y] -= T((1 - smooth) / double(count));
    }
    return count > 0 ? total / double(count) : 0;
  }

 private:
  constexpr bool counts(label l) const { return l != ignored && l >= 0; }
};

}  // namespace edl::nn
