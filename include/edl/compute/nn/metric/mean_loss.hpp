// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The model's loss, averaged over the samples. 0 of nothing.
struct mean_loss {
  static constexpr std::string_view name = "loss";
  static constexpr std::size_t totals = 2;  ///< the losses' sum, samples

  template <class T, class Label>
  static void update(std::span<double> sums, shape, int batch, std::span<T const>, std::span<Label const>,
                     double loss) {
    sums[0] += loss * batch;
    sums[1] += batch;
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

}  // namespace edl
