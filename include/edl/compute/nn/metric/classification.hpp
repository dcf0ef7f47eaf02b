// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::detail {

/// Calls act(outputs, label) for each counted class label of a minibatch, and returns their number. A sample
/// has one label or, with `nn::sequence_cross_entropy`, one for each place; labels below 0 do not count.
template <class T, class Act>
std::size_t each_label(shape output, int batch, view<T> outputs, view<std::int32_t> labels, Act&& act) {
  if (labels.empty()) return 0;
  std::size_t const classes = std::size_t(batch) * output.size() / labels.size();
  std::size_t counted = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    act(outputs.subspan(i * classes, classes), std::size_t(labels[i]));
    ++counted;
  }
  return counted;
}

/// The class of the largest output, the first of equal ones. If an output is NaN, there is none: returns the
/// number of classes.
template <class T>
std::size_t predicted(view<T> x) {
  std::size_t best = 0;
  bool all = x[0] == x[0];
  for (std::size_t k = 1; k < x.size(); ++k) {
    all = all && x[k] == x[k];
    if (x[k] > x[best]) best = k;
  }
  return all ? best : x.size();
}

/// "top_5_accuracy" of "top_", 5 and "_accuracy", ended by a 0; at most 63 characters.
constexpr auto numbered_name(std::string_view before, int number, std::string_view after) {
  std::array<char, 64> name{};
  std::array<char, 12> digits{};
  std::size_t at = 0, count = 0;
  for (char c : before) name[at++] = c;
  do digits[count++] = char('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) name[at++] = digits[--count];
  for (char c : after) name[at++] = c;
  return name;
}

}  // namespace edl::detail

namespace edl {
namespace detail {

/// right / all; 0 if `all` is 0.
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
/// For one probability per output element as label, positive above 1/2. 0 if no logit is above 0.
struct precision_score : detail::yes_counts {
  static constexpr std::string_view name = "precision";
  static constexpr double value(view<double> sums) { return detail::share_of(sums[0], sums[0] + sums[1]); }
};

/// The share of the positives whose logit is above 0: TP / (TP + FN). Labels as for `precision_score`. 0 if
/// there are no positives.
struct recall_score : detail::yes_counts {
  static constexpr std::string_view name = "recall";
  static constexpr double value(view<double> sums) { return detail::share_of(sums[0], sums[0] + sums[2]); }
};

/// The harmonic mean of `precision_score` and `recall_score`: 2 TP / (2 TP + FP + FN). 0 if both are 0.
struct f1_score : detail::yes_counts {
  static constexpr std::string_view name = "f1";
  static constexpr double value(view<double> sums) {
    return detail::share_of(2 * sums[0], 2 * sums[0] + sums[1] + sums[2]);
  }
};

/// The share of correct predictions. For class labels it counts samples whose largest output is the label's
/// (the first of equal ones). With `nn::sequence_cross_entropy` it counts places with a label. For
/// probabilities as labels, as in `nn::sigmoid_cross_entropy`, it counts output elements. An element is
/// correct if its logit is above 0 exactly when the label is above 1/2. A NaN output is wrong. 0 without
/// data.
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

/// The share of samples whose label's output is among the K largest; equal outputs share a rank, so a tie
/// counts. With `nn::sequence_cross_entropy` it counts places with a label. A NaN output counts as larger
/// than the label's. For class labels. 0 without data.
template <int K>
struct top_k {
  static_assert(K > 0, "edl: top_k<K> needs a K of at least 1");
  static constexpr auto text = detail::numbered_name("top_", K, "_accuracy");
  static constexpr std::string_view name{text.data()};
  static constexpr std::size_t totals = 2;  ///< right, all

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    std::size_t right = 0;
    std::size_t const all = detail::each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t y) {
      T const mine = x[y];
      std::size_t larger = 0;
      for (T each : x) larger += !(each <= mine);
      right += mine == mine && larger < std::size_t(K);
    });
    sums[0] += double(right);
    sums[1] += double(all);
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

namespace detail {

/// The class scores: each from true positives, and from how often a class is predicted, and occurs.
struct precision_of_counts {
  static constexpr std::string_view name = "precision_", macro_name = "macro_precision";
  static constexpr double value(double right, double said, double) { return share_of(right, said); }
};
struct recall_of_counts {
  static constexpr std::string_view name = "recall_", macro_name = "macro_recall";
  static constexpr double value(double right, double, double are) { return share_of(right, are); }
};
struct f1_of_counts {
  static constexpr std::string_view name = "f1_", macro_name = "macro_f1";
  static constexpr double value(double right, double said, double are) {
    return share_of(2 * right, said + are);
  }
};

/// A score of one class against all others.
template <class Score, int Class>
struct class_score {
  static constexpr bool counts = Class >= 0;
  static_assert(counts, "edl: a class is a number from 0 on");
  static constexpr auto text = numbered_name(Score::name, Class, "");
  static constexpr std::string_view name{text.data()};
  static constexpr std::size_t totals = 3;  ///< right, said, are
  static constexpr bool fits(std::size_t classes) { return !counts || std::size_t(Class) < classes; }

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t label) {
      bool const is = label == std::size_t(Class), said = predicted(x) == std::size_t(Class);
      sums[0] += is && said, sums[1] += said, sums[2] += is;
    });
  }
  static constexpr double value(view<double> sums) { return Score::value(sums[0], sums[1], sums[2]); }
};

/// The mean of the scores of all classes that are a label or a prediction of any sample.
template <class Score, int Classes>
struct macro_score {
  static constexpr bool several = Classes > 1;
  static_assert(several, "edl: a mean over classes is of two or more");
  static constexpr std::string_view name = Score::macro_name;
  static constexpr std::size_t totals = 3 * std::size_t(Classes);  ///< right, predicted, actual; by class
  static constexpr bool fits(std::size_t classes) { return !several || classes == std::size_t(Classes); }

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t label) {
      std::size_t const said = predicted(x);
      if (label >= std::size_t(Classes)) return;
      sums[3 * label + 2] += 1;
      if (said >= std::size_t(Classes)) return;  // a NaN is no prediction
      sums[3 * said + 1] += 1;
      if (said == label) sums[3 * label] += 1;
    });
  }
  static constexpr double value(view<double> sums) {
    double total = 0, classes = 0;
    for (std::size_t k = 0; k < totals; k += 3) {
      if (sums[k + 1] + sums[k + 2] == 0) continue;
      total += Score::value(sums[k], sums[k + 1], sums[k + 2]);
      ++classes;
    }
    return share_of(total, classes);
  }
};

}  // namespace detail

// Precision, recall and F1 of one class, for samples with one class label each: a prediction is positive if
// the class has the largest output (the first of equal ones). A score without data is 0.

/// Printed as "precision_3" for class 3.
template <int Class>
struct class_precision : detail::class_score<detail::precision_of_counts, Class> {};

/// Printed as "recall_3".
template <int Class>
struct class_recall : detail::class_score<detail::recall_of_counts, Class> {};

/// Printed as "f1_3".
template <int Class>
struct class_f1 : detail::class_score<detail::f1_of_counts, Class> {};

// Their means over all classes, whose number is the argument: `macro_f1<10>`. Classes that are neither a
// label nor a prediction do not count, as in scikit-learn.

/// Printed as "macro_precision".
template <int Classes>
struct macro_precision : detail::macro_score<detail::precision_of_counts, Classes> {};

/// Printed as "macro_recall".
template <int Classes>
struct macro_recall : detail::macro_score<detail::recall_of_counts, Classes> {};

/// Printed as "macro_f1".
template <int Classes>
struct macro_f1 : detail::macro_score<detail::f1_of_counts, Classes> {};

/// The confusion matrix: `confusion<3>` is nine counts. "confusion/2/0" is the number of samples of class 2
/// with their largest output at class 0 (the first of equal ones). For class labels, of at most 32 classes. A
/// sample with a NaN output is not counted.
template <int Classes>
struct confusion {
  static constexpr bool shown = Classes > 1 && Classes <= 32;
  static_assert(shown, "edl: confusion<N> is for 2 to 32 classes");
  static constexpr std::string_view name = "confusion";
  static constexpr std::size_t totals = std::size_t(Classes) * std::size_t(Classes);  ///< label by label
  static constexpr bool fits(std::size_t classes) { return !shown || classes == std::size_t(Classes); }

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    detail::each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t label) {
      constexpr auto all = std::size_t(Classes);
      if (std::size_t const said = detail::predicted(x); said < all && label < all)
        sums[label * all + said] += 1;
    });
  }

  static metric_values values(view<double> sums) {
    metric_values all;
    for (std::size_t i = 0; i < totals; ++i)
      all.emplace_back("confusion/" + std::to_string(i / std::size_t(Classes)) + '/' +
                           std::to_string(i % std::size_t(Classes)),
                       sums[i]);
    return all;
  }
};

/// exp of the mean of −log p, where p is softmax(outputs) at the label: the number of equally probable
/// classes that would be as hard to predict. For class labels; in sequences all counted places weigh the
/// same. It is exp of the loss without label smoothing and class weights. 0 without data.
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

/// The area under the ROC curve, as Keras approximates it by 200 thresholds −ε, 1/199, …, 198/199, 1 + ε on p
/// = sigmoid(logit) and trapezoids between them. Probabilities fall into 199 buckets (b/199, (b + 1)/199], 0
/// into the first. With P_b positives and N_b negatives in bucket b it is
///     AUC = Σ_b N_b · (P_b / 2 + Σ_{a > b} P_a) / (Σ P · Σ N),
/// the share of pairs of a positive and a negative in the right order. Pairs in one bucket, and so all ties,
/// count half. For one probability per output element as label (positive above 1/2). A NaN logit falls into
/// the first bucket. 0 if there are no positives or no negatives.
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
