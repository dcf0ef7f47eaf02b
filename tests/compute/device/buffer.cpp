// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/buffer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace buffer_test {

TEST_CASE("a buffer is zeroed, aligned, and keeps its place when it moves") {
  edl::aligned_buffer<float> a(37);
  REQUIRE(a.size() == 37);
  for (float v : a.span()) CHECK(v == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(a.span().data()) % 64 == 0);
  a.span()[36] = 5;
  float const* const at = a.span().data();
  auto b = std::move(a);
  CHECK(b.span().data() == at);
  CHECK(b.span()[36] == 5);
  edl::aligned_buffer<float> c(2);
  c = std::move(b);
  CHECK(c.span().data() == at);
}

TEST_CASE("a buffer of nothing is nothing, and one of too much is refused") {
  CHECK(edl::aligned_buffer<double>(0).span().empty());
  CHECK_THROWS_AS(edl::aligned_buffer<double>(std::numeric_limits<std::size_t>::max() / 4),
                  std::bad_array_new_length);
}

}  // namespace buffer_test
