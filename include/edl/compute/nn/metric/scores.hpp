// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {
namespace detail {

/// Of those that a model says yes to, and of those that are: how many are right. 0 of nothing.
constexpr double share_of(double right, double all) { return all > 0 ? right / all : 0; }

/// Counts output elements whose logit is above 0, whose label, a probability, is above 1/2, and both.
struct yes_counts {
  static constexpr std::size_t totals = 3;  ///< true positives, false positives, false negatives

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    std::size_t both = 0, said = 0, are = 0;
    for (std::size_t i = 0; i < n; ++i) {
      bool const yes = outputs[i] > 0, is = labels[i] > 0.5f;
      both += yes && is, said += yes, are += is;
    }
    sums[0] += double(both);
    sums[1] += double(said - both);
    sums[2] += double(are - both);
  }
};

}  // namespace detail

/// The share of the positives among the output elements whose logit is above 0 (p above 1/2): TP / (TP + FP).
/// For one probability per output element as label, positive above 1/2. 0 where no logit is above 0.
struct precision_score : detail::yes_counts {
  static constexpr std::string_view name = "precision";
  static constexpr double value(view<double> sums) { return detail::share_of(sums[0], sums[0] + sums[1]); }
};

/// The share of the positives whose logit is above 0: TP / (TP + FN). Labels as of `precision_score`. 0 where
/// there are no positives.
struct recall_score : detail::yes_counts {
  static constexpr std::string_view name = "recall";
  static constexpr double value(view<double> sums) { return detail::share_of(sums[0], sums[0] + sums[2]); }
};

/// The harmonic mean of `precision_score` and `recall_score`: 2 TP / (2 TP + FP + FN). 0 where both are.
struct f1_score : detail::yes_counts {
  static constexpr std::string_view name = "f1";
  static constexpr double value(view<double> sums) {
    return detail::share_of(2 * sums[0], 2 * sums[0] + sums[1] + sums[2]);
  }
};

}  // namespace edl
