// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/mean_squared_error.hpp"

namespace loss_mean_squared_error_test {

using edl::nn::mean_squared_error;
using labels = std::vector<float>;

TEST_CASE("mean squared error: known values") {
  // (1² + 2² + 0² + 3²) / 4
  std::vector<double> const x{1, 2, 3, 4};
  CHECK(check::value(mean_squared_error{}, {.channels = 2}, 2, x, labels{2, 0, 3, 1}) == 3.5);
  std::vector<double> dx(4);
  mean_squared_error{}({.channels = 2}, 2, edl::view<double>(x), edl::view<float>(labels{2, 0, 3, 1}), dx);
  CHECK(dx == std::vector<double>{-0.5, 1, 0, 1.5});
}

TEST_CASE("mean squared error: gradients are those of central differences") {
  check::gradient(mean_squared_error{}, {.height = 3}, 4, check::normal<double>(12, 2, 3),
                  check::normal<float>(12, 3));
}

TEST_CASE("mean squared error: an empty batch has no loss, labels are finite") {
  CHECK(check::value(mean_squared_error{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(mean_squared_error::valid(-1e38f, {}));
  CHECK(!mean_squared_error::valid(std::numeric_limits<float>::infinity(), {}));
  CHECK(!mean_squared_error::valid(-std::numeric_limits<float>::infinity(), {}));
  CHECK(!mean_squared_error::valid(std::numeric_limits<float>::quiet_NaN(), {}));
}

}  // namespace loss_mean_squared_error_test
