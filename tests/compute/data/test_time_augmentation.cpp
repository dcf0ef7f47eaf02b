// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/test_time_augmentation.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace test_time_augmentation_test {

TEST_CASE("parts of an average add up to one, whatever the weights") {
  constexpr auto two =
      edl::test_time_augmentation(edl::test_time_view{}, edl::test_time_view{.mirrored = true});
  CHECK(part_of(two.views, 0) == 0.5f);
  CHECK(part_of(two.views, 1) == 0.5f);
  constexpr auto three = edl::test_time_augmentation(
      edl::test_time_view{.weight = 2}, edl::test_time_view{.weight = 2}, edl::test_time_view{.weight = 4});
  CHECK(part_of(three.views, 0) == 0.25f);
  CHECK(part_of(three.views, 2) == 0.5f);
  static_assert(three.valid());
  static_assert(!edl::test_time_augmentation().valid());
  static_assert(!edl::test_time_augmentation(edl::test_time_view{.weight = 0}).valid());
  static_assert(
      !edl::test_time_augmentation(edl::test_time_view{}, edl::test_time_view{.weight = -1}).valid());
}

TEST_CASE("what is said on the views is averaged by their weights") {
  constexpr auto of = edl::test_time_augmentation(edl::test_time_view{.weight = 3}, edl::test_time_view{});
  std::vector<float> said{4, 8, 0, 16};
  join(of.views, said);
  CHECK(said[0] == 3);
  CHECK(said[1] == 10);
}

TEST_CASE(
    "the least confident rows are those whose greatest softmax is the least, and the first of the same") {
  std::vector<float> const outputs{1, 2, 100, 90, 0, 0, 5, 5, -7, 3};
  auto const rows = [&](std::size_t count) { return edl::least_confident(outputs, 2, count); };
  using list = std::vector<std::uint32_t>;
  CHECK(rows(0).empty());
  CHECK(rows(1) == list{2});
  CHECK(rows(3) == list{0, 2, 3});
  CHECK(rows(9) == list{0, 1, 2, 3, 4});
  constexpr auto of = edl::test_time_augmentation(edl::test_time_view{});
  static_assert(of.share == 1 && of.of_least_confident(0.25f).share == 0.25f);
  static_assert(of.of_least_confident(1).valid() && !of.of_least_confident(0).valid());
  static_assert(!of.of_least_confident(1.5f).valid());
}

TEST_CASE("a view is a placement that reflects") {
  constexpr edl::placement at = edl::test_time_view{.down = -1, .right = 2, .mirrored = true}.placed();
  static_assert(at == edl::placement{.down = -1, .right = 2, .at = edl::border::reflect, .mirrored = 1});
  CHECK(at.hole_size == 0);
}

}  // namespace test_time_augmentation_test
