// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/device/placement.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// One view of a picture in evaluation and prediction: it is moved down and to the right (negative: up, to
/// the left), then optionally mirrored left to right.
struct test_time_view {
  double weight = 1;  ///< of the network's outputs for this view; 0 or more
  int down = 0, right = 0;
  bool mirrored = false;
  border at = border::reflect;

  constexpr placement placed() const {
    return {.down = down, .right = right, .at = at, .mirrored = mirrored};
  }
};

/// The share of the i-th view: all shares add up to 1.
constexpr float part_of(std::span<test_time_view const> views, std::size_t i) {
  double sum = 0;
  for (test_time_view const& v : views) sum += v.weight;
  return float(views[i].weight / sum);
}

/// `said`: the network's outputs for the views, one after the other. Writes the mean over the first.
void join(std::span<test_time_view const> views, std::span<float> said);

/// The numbers of the `count` rows of outputs whose greatest softmax is lowest, ascending.
std::vector<std::uint32_t> least_confident(view<float> outputs, std::size_t classes, std::size_t count);

/// A network's output is the mean of its outputs for N views of a picture.
template <std::size_t N>
struct average {
  std::array<test_time_view, N> views;
  float share = 1;  ///< of a minibatch, in an evaluation: the rest uses only the first view

  /// Evaluations use all views for this share of a minibatch, the pictures whose class is least certain, and
  /// the first view for the others. Predictions use all views, so that they do not depend on other pictures.
  constexpr average of_least_confident(float of) const { return {views, of}; }

  constexpr bool valid() const {
    if (!(share > 0 && share <= 1)) return false;
    double sum = 0;
    for (test_time_view const& v : views) {
      if (!(v.weight >= 0)) return false;
      sum += v.weight;
    }
    return sum > 0;
  }
};

/// Test-time augmentation. The mean of a picture and its mirror image:
/// `test_time_augmentation(test_time_view{}, test_time_view{.mirrored = true})`.
template <class... View>
constexpr auto test_time_augmentation(View... v) {
  constexpr bool views = (std::same_as<View, test_time_view> && ...);
  static_assert(views, "edl: `test_time_augmentation` takes views: `edl::test_time_view{.mirrored = true}`");
  if constexpr (views)
    return average<sizeof...(View)>{{v...}};
  else
    return average<1>{};
}

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/test_time_augmentation.ipp"
#endif
