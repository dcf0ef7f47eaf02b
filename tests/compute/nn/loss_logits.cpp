// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/logits.hpp"

namespace loss_logits_test {

namespace detail = edl::nn::detail;

TEST_CASE("sums of logits of any number are those of plain loops") {
  for (std::size_t const n : {1, 3, 7, 8, 9, 511, 513, 5000}) {
    CAPTURE(n);
    auto const x = check::normal<float>(n, 1, 4);
    std::vector<double> const wide(x.begin(), x.end());
    double const largest = *std::max_element(wide.begin(), wide.end());
    double exps = 0, below = 0;
    for (double const each : wide) exps += std::exp(each - largest), below += each - largest;
    auto const sums = detail::sums_of_logits<float>(x);
    auto const wide_sums = detail::sums_of_logits<double>(wide);
    CHECK(double(sums.largest) == largest);
    CHECK(sums.exps == doctest::Approx(exps).epsilon(3e-7));
    CHECK(sums.below == doctest::Approx(below).epsilon(3e-7));
    CHECK(wide_sums.exps == doctest::Approx(exps).epsilon(1e-14));
    CHECK(wide_sums.below == doctest::Approx(below).epsilon(1e-13));
    std::vector<float> y(n);
    detail::scaled_exps<float>(x, sums.largest, 2, 0.5f, y);
    for (std::size_t i = 0; i < n; ++i)
      REQUIRE(double(y[i]) == doctest::Approx(2 * std::exp(wide[i] - largest) - 0.5).epsilon(1e-6));
  }
}

TEST_CASE("a logit of minus infinity is no share, and a NaN stays") {
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{1, -inf, 1, -1e4f};
  std::vector<float> y(4);
  CHECK(detail::sums_of_logits<float>(x).exps == 2);
  detail::scaled_exps<float>(x, 1, 1, 0, y);
  CHECK(y == std::vector<float>{1, 0, 1, 0});
  for (std::size_t const at : {0, 5, 8}) {
    std::vector<float> bad(9, 1);
    bad[at] = nan;
    CHECK(std::isnan(detail::sums_of_logits<float>(bad).exps));
  }
}

}  // namespace loss_logits_test
