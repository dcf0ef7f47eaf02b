// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/nn/metric/class_labels.hpp"
#include "edl/compute/nn/metric/numbered_name.hpp"
#include "edl/compute/nn/metric/scores.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {
namespace detail {

/// What the class scores are: each from true positives, and from how often a class is said, and is.
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

/// The mean of the scores of all classes that are a label or an answer of any sample.
template <class Score, int Classes>
struct macro_score {
  static constexpr bool several = Classes > 1;
  static_assert(several, "edl: a mean over classes is of two or more");
  static constexpr std::string_view name = Score::macro_name;
  static constexpr std::size_t totals = 3 * std::size_t(Classes);  ///< right, said, are, class by class
  static constexpr bool fits(std::size_t classes) { return !several || classes == std::size_t(Classes); }

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    each_label(output, batch, outputs, labels, [&](view<T> x, std::size_t label) {
      std::size_t const said = predicted(x);
      if (label >= std::size_t(Classes)) return;
      sums[3 * label + 2] += 1;
      if (said >= std::size_t(Classes)) return;  // a NaN is no answer
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

// Precision, recall and F1 of one class, of samples with one class label each: yes is where the class has the
// largest output (the first, of equal ones). A score of nothing is 0.

/// Printed as "precision_3" for class 3.
template <int Class>
struct class_precision : detail::class_score<detail::precision_of_counts, Class> {};

/// Printed as "recall_3".
template <int Class>
struct class_recall : detail::class_score<detail::recall_of_counts, Class> {};

/// Printed as "f1_3".
template <int Class>
struct class_f1 : detail::class_score<detail::f1_of_counts, Class> {};

// Their means over all classes, of which there are so many: `macro_f1<10>`. Classes that are neither a label
// nor an answer do not count, as scikit-learn has it.

/// Printed as "macro_precision".
template <int Classes>
struct macro_precision : detail::macro_score<detail::precision_of_counts, Classes> {};

/// Printed as "macro_recall".
template <int Classes>
struct macro_recall : detail::macro_score<detail::recall_of_counts, Classes> {};

/// Printed as "macro_f1".
template <int Classes>
struct macro_f1 : detail::macro_score<detail::f1_of_counts, Classes> {};

}  // namespace edl
