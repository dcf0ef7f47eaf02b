// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/distance.hpp"

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

namespace loss_huber_test {

using edl::nn::huber;
using labels = std::vector<float>;

TEST_CASE("huber: a square near, a line far") {
  // 0.5² / 2, 2 (3 − 1), 2 (1e4 − 1) of delta 2
  std::vector<double> const x{0.5, -3, 1e4};
  CHECK(check::value(huber{.delta = 2}, {}, 3, x, labels{0, 0, 0}) ==
        doctest::Approx((0.125 + 4 + 2 * (1e4 - 1)) / 3));
  std::vector<double> dx(3);
  edl::nn::as_loss(huber{.delta = 2})({}, 3, edl::view<double>(x), edl::view<float>(labels{0, 0, 0}), dx);
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
  CHECK(std::isnan(edl::nn::as_loss(huber{})({}, 1, edl::view<float>(x), edl::view<float>(labels{0}), dx)));
  CHECK(std::isnan(dx[0]));
  CHECK(check::value(huber{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(edl::nn::derived_loss<huber>::valid(-1e38f, {}));
  CHECK(!edl::nn::derived_loss<huber>::valid(std::numeric_limits<float>::infinity(), {}));
  CHECK(!huber{.delta = 0}.options_fit({}));
}

}  // namespace loss_huber_test

namespace loss_triplet_test {

using edl::nn::triplet;
using labels = std::vector<std::int32_t>;

TEST_CASE("triplet: every anchor against its farthest alike and its nearest other") {
  // On a line: 0, 1 and 4 of label 7, 3 of label 9.
  std::vector<double> const x{0, 1, 4, 3};
  labels const y{7, 7, 7, 9};
  // Anchors: 0 → 4 − 3, 1 → 3 − 2, 4 → 4 − 1; 3 has none alike.
  CHECK(check::value(triplet{.margin = 0.5f}, {}, 4, x, y) == doctest::Approx((1.5 + 1.5 + 3.5) / 3));
}

TEST_CASE("triplet: by all triplets of a minibatch") {
  std::size_t const n = 24, width = 6;
  auto const x = check::normal<double>(n * width, 1);
  labels y(n);
  for (std::size_t i = 0; i < n; ++i) y[i] = std::int32_t(i * i % 5);
  auto const distance = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < width; ++k) sum += std::pow(x[i * width + k] - x[j * width + k], 2);
    return std::sqrt(sum);
  };
  double expected = 0, anchors = 0;
  for (std::size_t a = 0; a < n; ++a) {
    double worst = -1e300;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q < n; ++q)
        if (p != a && y[p] == y[a] && y[q] != y[a]) worst = std::max(worst, distance(a, p) - distance(a, q));
    if (worst == -1e300) continue;
    ++anchors;
    expected += std::max(0.0, worst + double(0.3f));
  }
  CHECK(check::value(triplet{.margin = 0.3f}, {.channels = int(width)}, int(n), x, y) ==
        doctest::Approx(expected / anchors).epsilon(1e-12));
  check::gradient(triplet{.margin = 0.3f}, {.channels = int(width)}, int(n), x, y);
}

TEST_CASE("triplet: points in one place, far away, and without a partner") {
  std::vector<float> const x{1, 1, 1, 1, 1, 1, 1e4f, -1e4f};
  std::vector<float> dx(8, 7);
  CHECK(triplet{.margin = 0.5f}({.channels = 2}, 4, edl::view<float>(x),
                                edl::view<std::int32_t>(labels{1, 1, 2, 2}), dx) > 0);
  for (float const each : dx) CHECK(std::isfinite(each));
  dx.assign(8, 7);
  CHECK(triplet{}({.channels = 2}, 4, edl::view<float>(x), edl::view<std::int32_t>(labels{1, 1, 1, 1}), dx) ==
        0);
  CHECK(dx == std::vector<float>(8, 0));
  CHECK(triplet{}({.channels = 2}, 4, edl::view<float>(x), edl::view<std::int32_t>(labels{1, 2, 3, 4}), dx) ==
        0);
  CHECK(check::value(triplet{}, {.channels = 2}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(triplet::valid(1'000'000, {.channels = 2}));
  CHECK(!triplet::valid(-1, {.channels = 2}));
  CHECK(!triplet{.margin = 0}.options_fit({}));
}

}  // namespace loss_triplet_test
