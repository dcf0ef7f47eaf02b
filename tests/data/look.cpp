// SPDX-License-Identifier: Apache-2.0
#include "edl/data/look.hpp"

#include <doctest/doctest.h>

#include <vector>

TEST_CASE("parts of an average add up to one, whatever the weights") {
  constexpr auto two = edl::average_of(edl::look{}, edl::look{.mirrored = true});
  CHECK(part_of(two.looks, 0) == 0.5f);
  CHECK(part_of(two.looks, 1) == 0.5f);
  constexpr auto three =
      edl::average_of(edl::look{.weight = 2}, edl::look{.weight = 2}, edl::look{.weight = 4});
  CHECK(part_of(three.looks, 0) == 0.25f);
  CHECK(part_of(three.looks, 2) == 0.5f);
  static_assert(three.valid());
  static_assert(!edl::average_of().valid());
  static_assert(!edl::average_of(edl::look{.weight = 0}).valid());
  static_assert(!edl::average_of(edl::look{}, edl::look{.weight = -1}).valid());
}

TEST_CASE("what is said on the looks is averaged by their weights") {
  constexpr auto of = edl::average_of(edl::look{.weight = 3}, edl::look{});
  std::vector<float> said{4, 8, 0, 16};
  join(of.looks, said);
  CHECK(said[0] == 3);
  CHECK(said[1] == 10);
}

TEST_CASE("a look is a placement that reflects") {
  constexpr edl::placement at = edl::look{.down = -1, .right = 2, .mirrored = true}.placed();
  static_assert(at == edl::placement{.down = -1, .right = 2, .at = edl::border::reflect, .mirrored = 1});
  CHECK(at.hole_size == 0);
}
