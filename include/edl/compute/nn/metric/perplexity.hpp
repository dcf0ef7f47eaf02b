// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/nn/loss/logits.hpp"
#include "edl/compute/nn/metric/class_labels.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// exp of the mean of −log p, where p is softmax(outputs) at the label: among how many classes a model is as
/// good as undecided. For class labels; of a sequence all places that count are equal, whichever records they
/// are of. It is exp of the loss, where that has neither label smoothing nor class weights. 0 of nothing.
struct perplexity {
  static constexpr std::string_view name = "perplexity";
  static constexpr std::size_t totals = 2;  ///< the sum of −log p, labels

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    double total = 0;
    std::size_t const all = detail::each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t y) {
      auto const of_row = nn::detail::sums_of_logits(x);
      total += std::log(of_row.exps) - double(x[y] - of_row.largest);
    });
    sums[0] += total;
    sums[1] += double(all);
  }

  static double value(view<double> sums) { return sums[1] > 0 ? std::exp(sums[0] / sums[1]) : 0; }
};

}  // namespace edl
