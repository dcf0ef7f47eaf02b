// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"

namespace loss_softmax_cross_entropy_test {

using edl::nn::softmax_cross_entropy;
using labels = std::vector<std::int32_t>;

TEST_CASE("softmax cross entropy: known values") {
  // ln 10 for equal outputs; for {1, 2, 3} and class 2, ln(e + e² + e³) − 3.
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 10}, 1, std::vector<double>(10, 4.0), labels{7}) ==
        doctest::Approx(std::log(10.0)).epsilon(1e-14));
  std::vector<double> const x{1, 2, 3, 3, 1, 2};
  double const sum = std::log(std::exp(1) + std::exp(2) + std::exp(3));
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 1, std::vector<double>{1, 2, 3}, labels{2}) ==
        doctest::Approx(sum - 3).epsilon(1e-14));
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 2, x, labels{2, 1}) ==
        doctest::Approx(((sum - 3) + (sum - 1)) / 2).epsilon(1e-14));
}

TEST_CASE("softmax cross entropy: gradients are those of central differences") {
  for (float smoothing : {0.0f, 0.1f, 0.9f}) {
    CAPTURE(smoothing);
    softmax_cross_entropy const loss{.label_smoothing = smoothing};
    check::gradient(loss, {.channels = 7}, 5, check::normal<double>(35, 1, 3), {0, 6, 3, 3, 1});
    check::gradient(loss, {.height = 2, .width = 1, .channels = 2}, 3, check::normal<double>(12, 2),
                    {3, 0, 2});
    check::gradient(loss, {}, 2, {0.5, -4}, {0, 0});  // one class: nothing to learn
  }
}

TEST_CASE("softmax cross entropy: label smoothing is the mixture with the uniform distribution") {
  int const classes = 6;
  std::vector<double> const x = check::normal<double>(classes, 3, 2);
  double uniform = 0;
  for (int k = 0; k < classes; ++k)
    uniform += check::value(softmax_cross_entropy{}, {.channels = classes}, 1, x, {k});
  double const hard = check::value(softmax_cross_entropy{}, {.channels = classes}, 1, x, {4});
  double const s = double(0.3f);
  CHECK(check::value(softmax_cross_entropy{0.3f}, {.channels = classes}, 1, x, {4}) ==
        doctest::Approx((1 - s) * hard + s * uniform / classes).epsilon(1e-13));
}

TEST_CASE("softmax cross entropy: large outputs do not overflow") {
  float const inf = std::numeric_limits<float>::infinity();
  std::vector<float> const x{1e30f, -1e30f, 0, -3e38f, 3e38f, 0, 5, -inf, 5};
  std::vector<float> dx(9);
  double const loss = softmax_cross_entropy{}({.channels = 3}, 3, edl::view<float>(x),
                                              edl::view<std::int32_t>(labels{0, 1, 2}), dx);
  CHECK(loss == doctest::Approx(std::log(2.0) / 3));
  CHECK(dx == std::vector<float>{0, 0, 0, 0, 0, 0, 0.5f / 3, 0, 0.5f / 3 - 1.0f / 3});
  // Wrong and sure of it: the loss is the distance, the gradient is bounded.
  std::vector<float> const wrong{200, -200};
  std::vector<float> dwrong(2);
  CHECK(softmax_cross_entropy{}({.channels = 2}, 1, edl::view<float>(wrong),
                                edl::view<std::int32_t>(labels{1}), dwrong) == doctest::Approx(400));
  CHECK(dwrong == std::vector<float>{1, -1});
}

TEST_CASE("softmax cross entropy: a gradient in float sums to zero and is that in double") {
  auto const x = check::normal<float>(64 * 10, 5, 4);
  std::vector<double> const wide(x.begin(), x.end());
  labels y(64);
  for (int i = 0; i < 64; ++i) y[std::size_t(i)] = i % 10;
  std::vector<float> dx(x.size());
  std::vector<double> dwide(x.size());
  edl::shape const output{.channels = 10};
  double const a = softmax_cross_entropy{}(output, 64, edl::view<float>(x), edl::view<std::int32_t>(y), dx);
  double const b =
      softmax_cross_entropy{}(output, 64, edl::view<double>(wide), edl::view<std::int32_t>(y), dwide);
  CHECK(a == doctest::Approx(b).epsilon(1e-7));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::abs(double(dx[i]) - dwide[i]) < 1e-8);
  CHECK(std::abs(std::accumulate(dwide.begin(), dwide.end(), 0.0)) < 1e-15);
}

TEST_CASE("softmax cross entropy: an empty batch has no loss, labels are bounded") {
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(softmax_cross_entropy::valid(0, {.channels = 10}));
  CHECK(softmax_cross_entropy::valid(9, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(10, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(-1, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(std::numeric_limits<std::int32_t>::min(), {.channels = 10}));
}

}  // namespace loss_softmax_cross_entropy_test
