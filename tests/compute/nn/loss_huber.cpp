// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/huber.hpp"

namespace loss_huber_test {

using edl::nn::huber;
using labels = std::vector<float>;

TEST_CASE("huber: a square near, a line far") {
  // 0.5² / 2, 2 (3 − 1), 2 (1e4 − 1) of delta 2
  std::vector<double> const x{0.5, -3, 1e4};
  CHECK(check::value(huber{.delta = 2}, {}, 3, x, labels{0, 0, 0}) ==
        doctest::Approx((0.125 + 4 + 2 * (1e4 - 1)) / 3));
  std::vector<double> dx(3);
  huber{.delta = 2}({}, 3, edl::view<double>(x), edl::view<float>(labels{0, 0, 0}), dx);
  CHECK(dx[0] == doctest::Approx(0.5 / 3));
  CHECK(dx[1] == doctest::Approx(-2.0 / 3));
  CHECK(dx[2] == doctest::Approx(2.0 / 3));
}

TEST_CASE("huber: gradients are those of central differences") {
  for (float const delta : {0.25f, 1.0f, 100.0f})
    check::gradient(huber{.delta = delta}, {.channels = 3}, 8, check::normal<double>(24, 1, 2),
                    check::normal<float>(24, 2));
}

TEST_CASE("huber: a NaN stays, nothing is 0, labels are finite, delta is above 0") {
  std::vector<float> const x{std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> dx(1);
  CHECK(std::isnan(huber{}({}, 1, edl::view<float>(x), edl::view<float>(labels{0}), dx)));
  CHECK(std::isnan(dx[0]));
  CHECK(check::value(huber{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(huber::valid(-1e38f, {}));
  CHECK(!huber::valid(std::numeric_limits<float>::infinity(), {}));
  CHECK(!huber{.delta = 0}.options_fit({}));
}

}  // namespace loss_huber_test
