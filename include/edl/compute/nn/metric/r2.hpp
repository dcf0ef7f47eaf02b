// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The coefficient of determination: 1 − Σ (label − output)² / Σ (label − mean label)². 1 is perfect, 0 is as
/// good as the mean of the labels, and below 0 is worse. For one quantity per output element as label; where
/// there are several outputs, they are one row of numbers. 0 of nothing, and where all labels are equal. The
/// labels' spread is a difference of sums: labels whose mean is a million times their deviation leave few
/// digits of it.
struct r2 {
  static constexpr std::string_view name = "r2";
  static constexpr std::size_t totals = 4;  ///< elements, the labels' sum and squares, the errors' squares

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    double sum = 0, squares = 0, errors = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double const label = double(labels[i]), off = double(outputs[i]) - label;
      sum += label;
      squares += label * label;
      errors += off * off;
    }
    sums[0] += double(n);
    sums[1] += sum;
    sums[2] += squares;
    sums[3] += errors;
  }

  static constexpr double value(view<double> sums) {
    if (!(sums[0] > 0)) return 0;
    double const spread = sums[2] - sums[1] * sums[1] / sums[0];
    return spread > sums[2] * 1e-15 ? 1 - sums[3] / spread : 0;
  }
};

}  // namespace edl
