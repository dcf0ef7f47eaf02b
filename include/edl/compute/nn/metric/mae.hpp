// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The mean absolute error: |output − label|, averaged over the output elements. For one quantity per output
/// element as label. 0 of nothing.
struct mae {
  static constexpr std::string_view name = "mae";
  static constexpr std::size_t totals = 2;  ///< the distances' sum, elements

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(double(outputs[i]) - double(labels[i]));
    sums[0] += sum;
    sums[1] += double(n);
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

}  // namespace edl
