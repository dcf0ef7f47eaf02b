// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/speed_curve.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace speed_curve_test {

using edl::autoscaler::speed_curve;

TEST_CASE(
    "what was measured is told, and between and beyond it the time of a step goes as fixed + divided / n") {
  speed_curve const c({{4, 1 / (0.1 + 0.25)}, {1, 1 / (0.1 + 1.0)}});
  for (int n : {1, 2, 3, 4, 8, 16}) CHECK(c.at(n) == doctest::Approx(1 / (0.1 + 1.0 / n)));
  CHECK(c.at(0) == 0);
}

TEST_CASE("without a measurement, or with one, a job is taken to scale") {
  CHECK(speed_curve({}).at(7) == 7);
  CHECK_FALSE(speed_curve({{0, 5}, {3, 0}, {3, -1}}).known());
  CHECK(speed_curve({{2, 10}}).at(8) == 40);
  CHECK(speed_curve({{2, 10}, {2, 20}}).at(2) == 20);  // the later measurement counts
}

TEST_CASE("noise does not promise more than it can") {
  speed_curve const faster({{1, 10}, {2, 30}});  // beyond what a second worker can do
  CHECK(faster.at(4) <= 60);
  speed_curve const slower({{2, 30}, {4, 20}});
  CHECK(slower.at(8) <= 20 * 8 / 4);
  CHECK(slower.at(8) >= 20);
}

TEST_CASE("gains: what each worker adds falls, and a dip on the way to more is no end") {
  speed_curve const dips({{1, 10}, {4, 36}, {5, 30}, {8, 60}});
  auto const g = dips.gains(8);
  REQUIRE(g.size() == 8);
  CHECK(std::is_sorted(g.rbegin(), g.rend()));
  CHECK(g[4] == doctest::Approx(0.6));  // (60 - 36) / 4 workers / 10
  CHECK(speed_curve({}).gains(3) == std::vector<double>{1, 1, 1});
  CHECK(speed_curve({}).gains(0).empty());
}

TEST_CASE("useful: where more was measured to add nothing") {
  CHECK(speed_curve({}).useful(9) == 9);
  CHECK(speed_curve({{1, 10}, {2, 20}, {4, 20.1}}).useful(9) == 2);
  CHECK(speed_curve({{1, 10}, {2, 20}, {4, 39}}).useful(9) == 9);
  CHECK(speed_curve({{1, 10}, {4, 40}, {5, 35}}).useful(9) == 9);  // 5 may only be a bad size
  CHECK(speed_curve({{1, 10}, {2, 20}, {4, 20}}).useful(3) == 3);  // 3 was never tried, 4 is out of reach
}

}  // namespace speed_curve_test
