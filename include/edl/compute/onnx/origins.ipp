// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "edl/compute/onnx/origins.hpp"
#include "edl/core/inline.hpp"

namespace edl::onnx {
namespace detail {

/// The mark of an element in each export: 0; 1; its place in two numbers, which floats hold exactly; and a
/// fraction that distinguishes a computed number from one that was only moved.
inline std::array<float, 5> marks_of(std::size_t place) {
  constexpr std::size_t low = 1u << 12;
  auto const mixed = std::uint32_t(place * 2654435761u) >> 10;  // 22 bits
  return {0, 1, float(place % low + 1), float(place / low + 1), 1 + float(mixed * 2 + 1) / float(1u << 23)};
}

/// The element with these values in the exports, among `size` elements.
inline tensor_origin::element element_of(std::array<float, 5> const& x, std::size_t size) {
  double const plus = x[0], times = double(x[1]) - plus;
  if (times == 0) return {};
  auto const back = [&](float of) { return (double(of) - plus) / times; };
  auto const number = [&](float of) {
    double const n = back(of), whole = std::round(n);
    return std::abs(n - whole) < 1e-2 && whole >= 1 && whole < 16'777'216 ? std::size_t(whole) : 0;
  };
  std::size_t const low = number(x[2]), high = number(x[3]);
  if (low == 0 || high == 0) return {};
  std::size_t const at = low - 1 + ((high - 1) << 12);
  double const rounded = plus == 0 && times == 1 ? 0 : 1e-5 * (1 + std::abs(plus / times));
  if (at >= size || std::abs(back(x[4]) - double(marks_of(at)[4])) > rounded) return {};
  return {at, float(times), float(plus)};
}

}  // namespace detail

EDL_INLINE std::vector<tensor_origin> origins(parameter_layout const& layout,
                                              std::span<table_rows const> tables,
                                              std::function<void(graph&)> const& build) {
  std::vector<tensor_origin> all;
  graph first(layout, {}, tables);
  build(first);
  for (variable const& v : layout.variables)
    if (first.whole_variables().contains(v.name))
      all.push_back({v.name, {v.dims.sizes.begin(), v.dims.sizes.begin() + v.dims.rank}, {}});
  std::size_t const whole = all.size();
  // Pages that are never written take no memory.
  auto const memory = std::make_unique_for_overwrite<float[]>(layout.size());
  std::span const marked(memory.get(), layout.size());
  std::vector<std::vector<std::array<float, 5>>> seen;
  for (std::size_t which = 0; which < 5; ++which) {
    for (variable const& v : layout.variables)
      if (first.read_variables().contains(v.name))
        for (std::size_t i = v.offset; i < v.offset + v.dims.size(); ++i)
          marked[i] = detail::marks_of(i)[which];
    graph g(layout, marked, tables);
    build(g);
    std::size_t t = 0;
    g.each_tensor(
        [&](std::string const& name, std::vector<std::int64_t> const& dims, view<float> elements) {
          if (which == 0) {
            all.push_back({name, {dims.begin(), dims.end()}, {}});
            seen.emplace_back(elements.size());
          }
          for (std::size_t i = 0; i < elements.size(); ++i) seen[t][i][which] = elements[i];
          ++t;
        },
        true);
  }
  for (std::size_t t = 0; t < seen.size(); ++t) {
    auto& elements = all[whole + t].elements;
    elements.reserve(seen[t].size());
    for (auto const& x : seen[t]) elements.push_back(detail::element_of(x, marked.size()));
    seen[t] = {};
  }
  return all;
}

}  // namespace edl::onnx
