// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace edl {

/// The nearest bfloat16, ties to even: the upper half of a single-precision number (IEEE 754 binary32), with
/// 8 bits of exponent and 8 of precision. A NaN stays a NaN.
constexpr std::uint16_t to_bfloat16(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
  return std::uint16_t((bits & 0x7fff'ffff) > 0x7f80'0000 ? quiet : rounded);
}

constexpr float from_bfloat16(std::uint16_t x) { return std::bit_cast<float>(std::uint32_t(x) << 16); }

}  // namespace edl
