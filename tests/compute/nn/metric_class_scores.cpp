// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/class_scores.hpp"
#include "edl/compute/nn/metric/metric.hpp"

namespace metric_class_scores_test {

using classes = std::vector<std::int32_t>;

namespace {

static_assert(edl::class_precision<0>::name == "precision_0" && edl::class_f1<12>::name == "f1_12");
static_assert(edl::macro_recall<3>::name == "macro_recall");
static_assert(edl::metric_fits<edl::class_f1<2>>(3) && !edl::metric_fits<edl::class_f1<3>>(3));
static_assert(edl::metric_fits<edl::macro_f1<3>>(3) && !edl::metric_fits<edl::macro_f1<4>>(3));

edl::shape const three{.channels = 3};

/// Outputs whose largest is that of a class.
std::vector<float> saying(classes const& said) {
  std::vector<float> x(3 * said.size());
  for (std::size_t i = 0; i < said.size(); ++i) x[3 * i + std::size_t(said[i])] = 1;
  return x;
}

}  // namespace

TEST_CASE("class scores: known counts") {
  classes const labels{0, 0, 0, 1, 1, 2}, said{0, 0, 1, 1, 1, 0};
  auto const x = saying(said);
  CHECK(check::metric<edl::class_precision<0>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_recall<0>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_precision<1>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_recall<1>>(three, 6, x, labels) == 1);
  CHECK(check::metric<edl::class_f1<1>>(three, 6, x, labels) == doctest::Approx(0.8));
  CHECK(check::metric<edl::class_f1<2>>(three, 6, x, labels) == 0);
  CHECK(check::metric<edl::macro_precision<3>>(three, 6, x, labels) ==
        doctest::Approx((2.0 / 3 + 2.0 / 3) / 3));
  CHECK(check::metric<edl::macro_recall<3>>(three, 6, x, labels) == doctest::Approx((2.0 / 3 + 1) / 3));
  CHECK(check::metric<edl::macro_f1<3>>(three, 6, x, labels) == doctest::Approx((2.0 / 3 + 0.8) / 3));
}

TEST_CASE("class scores: classes that nobody knows of do not count in a mean") {
  CHECK(check::metric<edl::macro_f1<3>>(three, 2, saying({0, 1}), classes{0, 1}) == 1);
}

TEST_CASE("class scores: a NaN is no answer, and a place without a label is none") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{nan, 1, 0, 1, 0, 0};
  CHECK(check::totals<edl::macro_f1<3>>(three, 2, x, classes{1, 0}) ==
        std::vector<double>{1, 1, 1, 0, 0, 1, 0, 0, 0});
  CHECK(check::totals<edl::class_f1<1>>({1, 2, 3}, 1, x, classes{1, -1}) == std::vector<double>{0, 0, 1});
}

TEST_CASE("class scores: merging, and nothing is 0") {
  auto const x = check::normal<float>(150, 1);
  classes y(50);
  for (std::size_t i = 0; i < 50; ++i) y[i] = std::int32_t(i * i % 3);
  check::merges<edl::class_precision<1>>(three, 50, x, y, 1);
  check::merges<edl::class_recall<0>>(three, 50, x, y, 1);
  check::merges<edl::macro_f1<3>>(three, 50, x, y, 1);
  CHECK(check::nothing<edl::class_f1<0>>() == 0);
  CHECK(check::nothing<edl::macro_f1<3>>() == 0);
}

}  // namespace metric_class_scores_test
