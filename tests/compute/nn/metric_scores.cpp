// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/scores.hpp"

namespace metric_scores_test {

using floats = std::vector<float>;

TEST_CASE("scores: known counts") {
  // 3 right of 4 that are said, 3 of 5 that are.
  floats const x{1, 2, 0.1f, 3, -1, 0, -2, -5}, y{1, 1, 1, 0, 1, 1, 0, 0};
  CHECK(check::totals<edl::f1_score>({}, 8, x, y) == std::vector<double>{3, 1, 2});
  CHECK(check::metric<edl::precision_score>({}, 8, x, y) == 0.75);
  CHECK(check::metric<edl::recall_score>({}, 8, x, y) == 0.6);
  CHECK(check::metric<edl::f1_score>({}, 8, x, y) == doctest::Approx(2 * 0.75 * 0.6 / (0.75 + 0.6)));
  CHECK(check::metric<edl::f1_score>({.channels = 4}, 2, x, y) == check::metric<edl::f1_score>({}, 8, x, y));
}

TEST_CASE("scores: merging, a NaN says no, and nothing is 0") {
  auto const x = check::normal<float>(50, 1);
  floats y(50);
  for (std::size_t i = 0; i < 50; ++i) y[i] = i % 3 == 0;
  check::merges<edl::precision_score>({}, 50, x, y, 1);
  check::merges<edl::recall_score>({}, 50, x, y, 1);
  check::merges<edl::f1_score>({}, 50, x, y, 1);
  CHECK(check::metric<edl::recall_score>({}, 1, floats{std::numeric_limits<float>::quiet_NaN()}, floats{1}) ==
        0);
  CHECK(check::nothing<edl::precision_score>() == 0);
  CHECK(check::nothing<edl::recall_score>() == 0);
  CHECK(check::nothing<edl::f1_score>() == 0);
}

}  // namespace metric_scores_test
