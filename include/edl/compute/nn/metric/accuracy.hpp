// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/nn/metric/class_labels.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The share of right answers. For class labels: samples whose largest output is the label's (the first, of
/// equal ones). Of `nn::sequence_cross_entropy` it counts the places that have a label. For probabilities as
/// labels, as `nn::sigmoid_cross_entropy` has them, it counts output elements. One counts whose logit is
/// above 0 where the label is above 1/2, and not above 0 where it is not. An output that is NaN is wrong. 0
/// of nothing.
struct accuracy {
  static constexpr std::string_view name = "accuracy";
  static constexpr std::size_t totals = 2;  ///< right, all

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    std::size_t right = 0;
    std::size_t const all = detail::each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t y) {
      bool first = x[y] == x[y];
      for (std::size_t k = 0; k < x.size(); ++k) first &= k < y ? x[k] < x[y] : x[k] <= x[y];
      right += first;
    });
    sums[0] += double(right);
    sums[1] += double(all);
  }

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    std::size_t right = 0;
    for (std::size_t i = 0; i < n; ++i) right += labels[i] > 0.5f ? outputs[i] > 0 : outputs[i] <= 0;
    sums[0] += double(right);
    sums[1] += double(n);
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

}  // namespace edl
