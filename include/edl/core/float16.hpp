// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace edl {

/// Converts a half-precision number (IEEE 754 binary16): sign, 5 bits of exponent, 10 of fraction. Float32
/// represents all of them, so nothing is rounded. A NaN stays a NaN.
constexpr float from_float16(std::uint16_t x) {
  std::uint32_t const sign = std::uint32_t(x & 0x8000) << 16, exponent = (x >> 10) & 0x1f,
                      fraction = x & 0x3ff;
  if (exponent == 0) {  // no leading one: a multiple of 2^-24
    float const small = float(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
  }
  std::uint32_t const widened = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

}  // namespace edl
