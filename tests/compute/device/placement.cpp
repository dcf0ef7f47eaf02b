// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/placement.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace placement_test {

using edl::border, edl::placement;

namespace {

std::vector<float> shown(edl::shape s, std::vector<float> const& picture, placement const& how) {
  std::vector<float> to(picture.size(), -1);
  edl::place(s, picture, how, to);
  return to;
}

}  // namespace

TEST_CASE("a picture is moved, then mirrored, then a square of it is zeroed") {
  edl::shape const s{3, 3, 1};
  std::vector<float> const nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(shown(s, nine, {}) == nine);
  CHECK(shown(s, nine, {.down = 1, .right = -1}) == std::vector<float>{0, 0, 0, 2, 3, 0, 5, 6, 0});
  CHECK(shown(s, nine, {.down = 1, .right = -1, .mirrored = 1}) ==
        std::vector<float>{0, 0, 0, 0, 3, 2, 0, 6, 5});
  CHECK(shown(s, nine, {.down = 1, .right = -1, .at = border::reflect}) ==
        std::vector<float>{5, 6, 5, 2, 3, 2, 5, 6, 5});
  CHECK(shown(s, nine, {.hole_top = 1, .hole_left = -1, .hole_size = 2, .mirrored = 1}) ==
        std::vector<float>{3, 2, 1, 0, 5, 4, 0, 8, 7});
  CHECK(shown(s, nine, {.down = 7, .right = 7}) == std::vector<float>(9, 0.0f));
}

TEST_CASE("channels stay together") {
  CHECK(shown({1, 3, 2}, {1, 2, 3, 4, 5, 6}, {.right = 1, .at = border::reflect, .mirrored = 1}) ==
        std::vector<float>{3, 4, 1, 2, 3, 4});
}

TEST_CASE("reflection goes there and back as far as one likes, and knows pictures of one place") {
  std::vector<int> there;
  for (int i = -5; i < 8; ++i) there.push_back(edl::reflected(i, 3));
  CHECK(there == std::vector<int>{1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1});
  CHECK(edl::reflected(-3, 1) == 0);
  CHECK(edl::reflected(4, 1) == 0);
}

}  // namespace placement_test
