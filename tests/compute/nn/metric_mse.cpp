// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/loss/mean_squared_error.hpp"
#include "edl/compute/nn/metric/mse.hpp"

namespace metric_mse_test {

using edl::mse;

TEST_CASE("mse: known value, the loss of that name, and merging") {
  CHECK(check::metric<mse>({.channels = 2}, 2, std::vector<float>{1, 2, 3, 4},
                           std::vector<float>{2, 0, 3, 1}) == 3.5);
  edl::shape const output{.channels = 3};
  auto const x = check::normal<float>(60, 1);
  auto const y = check::normal<float>(60, 2);
  CHECK(check::metric<mse>(output, 20, x, y) ==
        doctest::Approx(check::value(edl::nn::mean_squared_error{}, output, 20, x, y)).epsilon(1e-7));
  check::merges<mse>(output, 20, x, y, 3);
}

TEST_CASE("mse of nothing is 0") { CHECK(check::nothing<mse>() == 0); }

}  // namespace metric_mse_test
