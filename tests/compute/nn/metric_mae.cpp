// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/mae.hpp"

namespace metric_mae_test {

using edl::mae;

TEST_CASE("mae: known value, and merging") {
  CHECK(check::metric<mae>({.channels = 2}, 2, std::vector<float>{1, 2, 3, 4},
                           std::vector<float>{2, 0, 3, 1}) == 1.5);
  check::merges<mae>({.channels = 3}, 20, check::normal<float>(60, 1), check::normal<float>(60, 2), 3);
}

TEST_CASE("mae of nothing is 0") { CHECK(check::nothing<mae>() == 0); }

}  // namespace metric_mae_test
