// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl {
namespace detail {

/// "top_5_accuracy" for 5, ended by a 0.
constexpr auto top_k_name(int k) {
  std::array<char, 32> name{};
  std::array<char, 12> digits{};
  std::size_t at = 0, count = 0;
  for (char c : std::string_view("top_")) name[at++] = c;
  for (; k > 0; k /= 10) digits[count++] = char('0' + k % 10);
  while (count > 0) name[at++] = digits[--count];
  for (char c : std::string_view("_accuracy")) name[at++] = c;
  return name;
}

}  // namespace detail

/// The share of samples whose label's output is among the K largest; equal outputs share a place, so that a
/// tie counts as in. Of several places of a sample, those whose label is no class do not count. An output
/// that is NaN is larger than the label's. For class labels. 0 of nothing.
template <int K>
struct top_k {
  static_assert(K > 0, "edl: top_k<K> needs a K of at least 1");
  static constexpr auto text = detail::top_k_name(K);
  static constexpr std::string_view name{text.data()};
  static constexpr std::size_t totals = 2;  ///< right, all

  template <class T>
  static void update(std::span<double> sums, shape output, int batch, view<T> outputs,
                     view<std::int32_t> labels, double) {
    if (batch < 1) return;
    std::size_t const classes = output.size() / (labels.size() / std::size_t(batch));
    int right = 0, all = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0 || std::size_t(labels[i]) >= classes) continue;
      ++all;
      view<T> const x = outputs.subspan(i * classes, classes);
      T const mine = x[std::size_t(labels[i])];
      std::size_t larger = 0;
      for (T each : x) larger += !(each <= mine);
      right += mine == mine && larger < std::size_t(K);
    }
    sums[0] += right;
    sums[1] += all;
  }

  static constexpr double value(view<double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }
};

}  // namespace edl
