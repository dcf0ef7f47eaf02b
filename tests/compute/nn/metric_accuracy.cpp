// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/accuracy.hpp"

namespace metric_accuracy_test {

using edl::accuracy;
using classes = std::vector<std::int32_t>;
using quantities = std::vector<float>;

TEST_CASE("accuracy: the largest output against the label") {
  auto const x = check::normal<float>(200 * 5, 1);
  classes y(200);
  int right = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    y[i] = std::int32_t(i % 5);
    right += std::max_element(x.begin() + long(i * 5), x.begin() + long(i * 5 + 5)) - x.begin() ==
             long(i * 5 + i % 5);
  }
  REQUIRE((right > 10 && right < 100));
  CHECK(check::metric<accuracy>({.channels = 5}, 200, x, y) == right / 200.0);
  check::merges<accuracy>({.channels = 5}, 200, x, y, 1);
}

TEST_CASE("accuracy: of a sequence, the places that have a label") {
  quantities const x{2, 1, 0, 3, 5, 4, 0, 1};
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{0, 0, -1, 1}) == doctest::Approx(2.0 / 3));
  check::merges<accuracy>({1, 2, 5}, 100, check::normal<float>(1000, 2), classes(200, 3), 2);
}

TEST_CASE("accuracy: of equal outputs the first is the answer, NaN is none") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  edl::shape const three{.channels = 3};
  CHECK(check::metric<accuracy>(three, 1, quantities{1, 1, 0}, classes{0}) == 1);
  CHECK(check::metric<accuracy>(three, 1, quantities{1, 1, 0}, classes{1}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, 1, 0}, classes{0}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, 1, 0}, classes{1}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, nan, nan}, classes{0}) == 0);
}

TEST_CASE("accuracy: a logit against a probability") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(check::metric<accuracy>({}, 4, quantities{2, -1, 0.1f, -3}, quantities{1, 0, 0, 1}) == 0.5);
  CHECK(check::metric<accuracy>({}, 2, quantities{0, 0}, quantities{0, 1}) == 0.5);  // p = 1/2 is "no"
  CHECK(check::metric<accuracy>({}, 2, quantities{nan, nan}, quantities{0, 1}) == 0);
  CHECK(check::metric<accuracy>({.channels = 2}, 2, quantities{1, 1, 1, -1}, quantities{1, 0, 1, 1}) == 0.5);
  check::merges<accuracy>({}, 50, check::normal<float>(50, 4), quantities(50, 1), 1);
}

TEST_CASE("accuracy: a class for each place of a sample, and places without one") {
  quantities const x{1, 2, 5, 4, 0, 1, 3, 2};  // of two samples of two places: classes 1, 0, 1, 0
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{1, 0, 0, 0}) == 0.75);
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{1, -1, -1, 1}) == 0.5);
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{-1, -1, -1, -1}) == 0);
}

TEST_CASE("accuracy of nothing is 0") { CHECK(check::nothing<accuracy>() == 0); }

}  // namespace metric_accuracy_test
