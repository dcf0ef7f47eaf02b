// SPDX-License-Identifier: Apache-2.0
#include "edl/core/bfloat16.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace bfloat16_test {

TEST_CASE("numbers round to the nearest bfloat16, ties to even") {
  CHECK(edl::from_bfloat16(edl::to_bfloat16(1.0f)) == 1.0f);
  CHECK(edl::from_bfloat16(edl::to_bfloat16(-0.15625f)) == -0.15625f);
  CHECK(edl::to_bfloat16(1.0f + 0x1p-8f) == 0x3f80);             // half way: to even, down
  CHECK(edl::to_bfloat16(1.0f + 0x1p-8f + 0x1p-20f) == 0x3f81);  // above half way
  CHECK(edl::to_bfloat16(1.0f + 3 * 0x1p-8f) == 0x3f82);         // half way: to even, up
  for (float x = 1e-30f; x < 1e30f; x *= 1.37f)
    CHECK(std::abs(edl::from_bfloat16(edl::to_bfloat16(x)) - x) <= x * 0x1p-8f);
}

TEST_CASE("what is no number, or too large, stays so") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(edl::from_bfloat16(edl::to_bfloat16(infinity)) == infinity);
  CHECK(edl::from_bfloat16(edl::to_bfloat16(-infinity)) == -infinity);
  CHECK(edl::from_bfloat16(edl::to_bfloat16(std::numeric_limits<float>::max())) == infinity);
  CHECK(std::isnan(edl::from_bfloat16(edl::to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(edl::from_bfloat16(edl::to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::signbit(edl::from_bfloat16(edl::to_bfloat16(-0.0f))));
}

}  // namespace bfloat16_test
