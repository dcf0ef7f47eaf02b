// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::nn {

/// Half the square of d = output − label up to |d| = delta, and delta · (|d| − delta / 2) beyond. It is
/// averaged over the output elements. (Huber, "Robust estimation of a location parameter", 1964.) Outliers
/// pull with a bounded force.
struct huber {
  float delta = 1;  ///< above 0

  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(shape output) { return output.size(); }
  static constexpr bool valid(label l, shape) { return l - l == 0; }  // neither infinite nor NaN
  constexpr bool options_fit(shape) const { return delta > 0; }

  /// See `loss_function`. Every label must be `valid`.
  template <class T>
  double operator()(shape output, int batch, view<T> outputs, view<label> truth,
                    std::span<std::type_identity_t<T>> gradients) const {
    std::size_t const n = std::size_t(batch) * output.size();
    T const most = T(delta), scale = T(1 / double(n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      T const off = outputs[i] - T(truth[i]), far = std::abs(off);
      T const inside = far > most ? (off > 0 ? most : -most) : off;  // a NaN stays
      total += double(inside) * (double(off) - double(inside) / 2);
      if (!gradients.empty()) gradients[i] = inside * scale;
    }
    return n > 0 ? total / double(n) : 0;
  }
};

}  // namespace edl::nn
