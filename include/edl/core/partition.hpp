// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace edl {

/// Elements [first, last) of an arena.
struct element_range {
  std::size_t first = 0, last = 0;

  constexpr std::size_t size() const { return last - first; }
  friend constexpr bool operator==(element_range, element_range) = default;
};

/// The part that server `part` of `parts` keeps of an arena of `elements` floats. Parts are contiguous and
/// equal to within 64 bytes. Their edges lie on multiples of 16 elements (one cache line), without regard to
/// where a variable ends. With more servers than lines some parts are empty. Needs part < parts.
constexpr element_range partition(std::size_t elements, std::uint32_t parts, std::uint32_t part) {
  auto const edge = [&](std::uint32_t i) {
    if (i == parts) return elements;
    std::size_t const exact =
        elements / parts * i + elements % parts * i / parts;  // i · elements / parts, no overflow
    return exact / 16 * 16;
  };
  return {edge(part), edge(part + 1)};
}

}  // namespace edl
