// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/initial_variables.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "edl/core/error.hpp"

namespace initial_variables_test {

TEST_CASE("variables that are set are written to any part of the arena, and the others are left") {
  edl::parameter_layout const layout{{{"a", {2}, 0}, {"b", {3}, 2}, {"c", {1}, 5}}, 5, 1};
  edl::initial_variables v(layout);
  std::ranges::copy(std::vector<float>{1, 2, 3}, v["b"].begin());
  v["c"][0] = 4;
  CHECK(v["b"][1] == 2);  // once more is the same
  std::vector<float> all(6, -1), part(2, -1);
  v.write(0, all);
  CHECK(all == std::vector<float>{-1, -1, 1, 2, 3, 4});
  v.write(1, part);
  CHECK(part == std::vector<float>{-1, 1});
  v.write(3, part);
  CHECK(part == std::vector<float>{2, 3});
  CHECK_THROWS_WITH_AS(v["d"], "the model has no variable 'd'; it has a, b, c", edl::error);
}

}  // namespace initial_variables_test
