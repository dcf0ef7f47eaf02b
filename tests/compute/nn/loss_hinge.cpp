// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/hinge.hpp"

namespace loss_hinge_test {

using edl::nn::hinge;
using labels = std::vector<float>;

TEST_CASE("hinge: what lacks of the margin") {
  // 1 − 0.25, 1 + 0.25, nothing, 1 + 1e4
  std::vector<double> const x{0.25, 0.25, -3, 1e4};
  labels const y{1, 0, 0, 0};
  CHECK(check::value(hinge{}, {}, 4, x, y) == doctest::Approx((0.75 + 1.25 + 10001) / 4));
  CHECK(check::value(hinge{.squared = true}, {}, 4, x, y) ==
        doctest::Approx((0.75 * 0.75 + 1.25 * 1.25 + 10001.0 * 10001.0) / 4));
  CHECK(check::value(hinge{.margin = 0.125f}, {}, 2, std::vector<double>{0.25, 0.25}, labels{1, 0}) ==
        doctest::Approx(0.375 / 2));
  std::vector<double> dx(4);
  hinge{}({}, 4, edl::view<double>(x), edl::view<float>(y), dx);
  CHECK(dx == std::vector<double>{-0.25, 0.25, 0, 0.25});
}

TEST_CASE("hinge: gradients are those of central differences") {
  labels const y{0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0};
  for (bool const squared : {false, true})
    check::gradient(hinge{.margin = 0.7f, .squared = squared}, {.channels = 2}, 6,
                    check::normal<double>(12, 1, 2), y);
}

TEST_CASE("hinge: a NaN stays, nothing is 0, labels are 0 or 1, the margin is above 0") {
  std::vector<float> const x{std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> dx(1);
  CHECK(std::isnan(hinge{}({}, 1, edl::view<float>(x), edl::view<float>(labels{0}), dx)));
  CHECK(std::isnan(dx[0]));
  CHECK(check::value(hinge{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(hinge::valid(0, {}));
  CHECK(hinge::valid(1, {}));
  CHECK(!hinge::valid(-1, {}));
  CHECK(!hinge::valid(0.5f, {}));
  CHECK(!hinge{.margin = 0}.options_fit({}));
}

}  // namespace loss_hinge_test
