// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The area under the ROC curve, as Keras approximates it by 200 thresholds −ε, 1/199, …, 198/199, 1 + ε on p
/// = sigmoid(logit) and trapezoids between them. Probabilities fall into 199 buckets (b/199, (b + 1)/199], 0
/// into the first. With P_b positives and N_b negatives in bucket b it is
///     AUC = Σ_b N_b · (P_b / 2 + Σ_{a > b} P_a) / (Σ P · Σ N),
/// the share of pairs of a positive and a negative that stand in the right order. Pairs of one bucket, and so
/// all ties, count half. For one probability per output element as label (positive above 1/2). A logit that
/// is NaN falls into the first bucket. 0 where there are no positives or no negatives.
struct auc {
  static constexpr std::string_view name = "auc";
  static constexpr std::size_t buckets = 199;
  static constexpr std::size_t totals = 2 * buckets;  ///< positives per bucket, then negatives per bucket

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs, view<float> labels,
                     double) {
    std::size_t const n = std::size_t(batch) * output.size();
    for (std::size_t i = 0; i < n; ++i)
      sums[bucket(1 / (1 + std::exp(-double(outputs[i])))) + (labels[i] > 0.5f ? 0 : buckets)] += 1;
  }

  static constexpr double value(view<double> sums) {
    double above = 0, negatives = 0, ordered = 0;
    for (std::size_t b = buckets; b-- > 0;) {
      double const p = sums[b], n = sums[buckets + b];
      ordered += n * (p / 2 + above);
      above += p;
      negatives += n;
    }
    return above > 0 && negatives > 0 ? ordered / (above * negatives) : 0;
  }

  /// The bucket of a probability.
  static std::size_t bucket(double p) {
    double const place = std::ceil(p * double(buckets)) - 1;
    return !(place > 0) ? 0 : place < double(buckets) ? std::size_t(place) : buckets - 1;
  }
};

}  // namespace edl
