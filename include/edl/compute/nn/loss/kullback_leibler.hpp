// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/compute/nn/loss/logits.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// How far softmax(outputs) is from the distribution that the labels are, Σ z·(log z − log softmax(x)), per
/// sample (Kullback and Leibler, 1951). There is a probability for each output of a sample. Their sum is one.
/// A probability of 0 adds nothing. The gradient is that of cross entropy.
struct kullback_leibler {
  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l >= 0 && l <= 1; }
  static constexpr bool fits(shape output) { return output.size() > 1; }  ///< of one the loss is always 0

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = output.size();
    double total = 0;
    for (std::size_t i = 0; i < std::size_t(batch); ++i) {
      view<T> const x = outputs.subspan(i * n, n);
      view<label> const z = truth.subspan(i * n, n);
      auto const sums = detail::sums_of_logits(x);
      double const all = std::log(sums.exps);
      double mass = 0;  // 1, but for rounding
      for (std::size_t k = 0; k < n; ++k) {
        if (!(z[k] > 0)) continue;
        double const p = double(z[k]);
        total += p * (std::log(p) - double(x[k] - sums.largest) + all);
        mass += p;
      }
      if (gradients.empty()) continue;
      auto const dx = gradients.subspan(i * n, n);
      detail::scaled_exps(x, sums.largest, T(mass / (sums.exps * batch)), T(0), dx);
      T const share = T(1 / double(batch));
      for (std::size_t k = 0; k < n; ++k) dx[k] -= T(z[k]) * share;
    }
    return batch > 0 ? total / batch : 0;
  }
};

}  // namespace edl::nn
