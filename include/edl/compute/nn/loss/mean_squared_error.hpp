// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

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

}  // namespace edl::nn
