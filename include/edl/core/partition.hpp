// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "edl/core/span.hpp"

namespace edl {

/// Elements [first, last) of an arena.
struct element_range {
  std::size_t first = 0, last = 0;

  constexpr std::size_t size() const { return last - first; }
  friend constexpr bool operator==(element_range, element_range) = default;
};

/// The elements that both ranges contain. If they share none, the result is empty and its `last` equals its
/// `first`.
constexpr element_range overlap(element_range a, element_range b) {
  std::size_t const first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.last, b.last))};
}

/// The part that server `part` of `parts` holds of an arena of `elements` floats. Parts are contiguous.
/// Without `borders` their sizes are equal to within 64 bytes, and their edges are multiples of 16 elements
/// (one cache line), wherever variables end; with more servers than lines some parts are empty. With
/// `borders`, which ascend from 0 to `elements`, each edge moves to the nearest border, to the lower one in a
/// tie. Needs part < parts.
constexpr element_range partition(std::size_t elements, std::uint32_t parts, std::uint32_t part,
                                  view<std::size_t> borders = {}) {
  auto const edge = [&](std::uint32_t i) {
    if (i == parts) return elements;
    std::size_t const exact =
        elements / parts * i + elements % parts * i / parts;  // i · elements / parts, no overflow
    if (borders.empty()) return exact / 16 * 16;
    auto const above = std::lower_bound(borders.begin(), borders.end(), exact);
    if (above == borders.begin()) return *above;
    std::size_t const below = *(above - 1);
    return exact - below <= *above - exact ? below : *above;
  };
  return {edge(part), edge(part + 1)};
}

}  // namespace edl
