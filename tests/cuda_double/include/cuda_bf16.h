// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};

struct alignas(4) __nv_bfloat162 {
  std::uint16_t x, y;
};

/// The nearest, ties to even; what is no number becomes 0x7fff, as the instruction does it.
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  auto const round = [](float from) {
    auto const bits = std::bit_cast<std::uint32_t>(from);
    if (from != from) return std::uint16_t{0x7fff};
    return std::uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  };
  return {round(low), round(high)};
}
