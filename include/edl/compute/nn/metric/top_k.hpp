// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/compute/nn/metric/class_labels.hpp"
#include "edl/compute/nn/metric/numbered_name.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// The share of samples whose label's output is among the K largest; equal outputs share a place, so that a
/// tie counts as in. Of `nn::sequence_cross_entropy` it counts the places that have a label. An output that
/// is NaN is larger than the label's. For class labels. 0 of nothing.
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

}  // namespace edl
