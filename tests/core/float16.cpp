// SPDX-License-Identifier: Apache-2.0
#include "edl/core/float16.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace float16_test {

TEST_CASE("every half-precision number is the one that IEEE 754 says") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x1'0000; ++bits) {
    int const exponent = int(bits >> 10) & 0x1f;
    float const fraction = float(bits & 0x3ff) / 1024;
    if (exponent == 31) continue;
    float const size = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    float const found = edl::from_float16(std::uint16_t(bits));
    if (found != (bits & 0x8000 ? -size : size) || std::signbit(found) != ((bits & 0x8000) != 0)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half-precision numbers that are known") {
  static_assert(edl::from_float16(0x3c00) == 1);
  static_assert(edl::from_float16(0xc000) == -2);
  static_assert(edl::from_float16(0x7bff) == 65504);
  static_assert(edl::from_float16(0x0400) == 0x1p-14f);
  static_assert(edl::from_float16(0x0001) == 0x1p-24f);
  static_assert(edl::from_float16(0x3555) == 0.333251953125f);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(edl::from_float16(0x7c00) == infinity);
  CHECK(edl::from_float16(0xfc00) == -infinity);
  CHECK(std::isnan(edl::from_float16(0x7c01)));
  CHECK(std::isnan(edl::from_float16(0xfe00)));
}

}  // namespace float16_test
