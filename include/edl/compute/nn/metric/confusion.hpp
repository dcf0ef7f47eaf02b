// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/nn/metric/class_labels.hpp"
#include "edl/compute/nn/metric/values.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// How often each class is taken for each: `confusion<3>` is nine counts. "confusion/2/0" is how many samples
/// of class 2 have their largest output at class 0 (the first, of equal ones). For class labels, of at most
/// 32 classes. A sample with an output that is NaN is in none of the counts.
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

}  // namespace edl
