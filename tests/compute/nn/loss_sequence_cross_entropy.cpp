// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/sequence_cross_entropy.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"

namespace loss_sequence_cross_entropy_test {

using edl::nn::sequence_cross_entropy;
using edl::nn::softmax_cross_entropy;
using labels = std::vector<std::int32_t>;

TEST_CASE("sequence cross entropy: the mean of cross entropies over the places that count") {
  edl::shape const output{1, 4, 5};
  auto const x = check::normal<double>(2 * 4 * 5, 1, 3);
  labels const y{0, 4, -1, 2, -1, -1, 3, -1};
  for (float const smoothing : {0.0f, 0.2f}) {
    double expected = 0;
    int counted = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      if (y[i] < 0) continue;
      std::vector<double> const row(x.begin() + long(5 * i), x.begin() + long(5 * i + 5));
      expected += check::value(softmax_cross_entropy{smoothing}, {.channels = 5}, 1, row, {y[i]});
      ++counted;
    }
    CHECK(counted == 4);
    CHECK(check::value(sequence_cross_entropy{smoothing}, output, 2, x, y) ==
          doctest::Approx(expected / counted).epsilon(1e-13));
  }
}

TEST_CASE("sequence cross entropy: gradients are those of central differences") {
  labels const y{0, 4, -1, 2, -1, -1, 3, -1};
  auto const x = check::normal<double>(2 * 4 * 5, 2, 2);
  for (float const smoothing : {0.0f, 0.3f}) {
    check::gradient(sequence_cross_entropy{smoothing}, {1, 4, 5}, 2, x, y);
    check::gradient(sequence_cross_entropy{smoothing, {1, 0.5f, 2, 3, 0}}, {2, 2, 5}, 2, x, y);
  }
}

TEST_CASE("sequence cross entropy: a place that does not count has no gradient, whatever stands there") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{1, 2, nan, 1e30f};
  std::vector<float> dx(4, 7);
  double const loss =
      sequence_cross_entropy{}({1, 2, 2}, 1, edl::view<float>(x), edl::view<std::int32_t>(labels{0, -1}), dx);
  CHECK(loss == doctest::Approx(std::log(1 + std::exp(1.0))));
  CHECK(dx[2] == 0);
  CHECK(dx[3] == 0);
  CHECK(dx[0] + dx[1] == doctest::Approx(0));
  CHECK(sequence_cross_entropy{}({1, 2, 2}, 1, edl::view<float>(x), edl::view<std::int32_t>(labels{-1, -1}),
                                 dx) == 0);
  CHECK(dx == std::vector<float>(4, 0));
}

TEST_CASE("sequence cross entropy: extreme logits, many classes, and single precision") {
  std::vector<float> const far{1e4f, -1e4f, 0, -1e4f, 1e4f, 0};
  std::vector<float> dx(6);
  CHECK(sequence_cross_entropy{}({1, 2, 3}, 1, edl::view<float>(far), edl::view<std::int32_t>(labels{0, 0}),
                                 dx) == doctest::Approx(1e4));
  CHECK(dx == std::vector<float>{0, 0, 0, -0.5f, 0.5f, 0});
  std::size_t const classes = 3001;
  auto const x = check::normal<float>(3 * classes, 3, 4);
  std::vector<double> const wide(x.begin(), x.end());
  labels const y{17, 3000, 0};
  std::vector<float> narrow(x.size());
  std::vector<double> exact(x.size());
  edl::shape const output{1, 3, int(classes)};
  double const a =
      sequence_cross_entropy{}(output, 1, edl::view<float>(x), edl::view<std::int32_t>(y), narrow);
  double const b =
      sequence_cross_entropy{}(output, 1, edl::view<double>(wide), edl::view<std::int32_t>(y), exact);
  CHECK(a == doctest::Approx(b).epsilon(1e-7));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::abs(double(narrow[i]) - exact[i]) < 1e-7);
}

TEST_CASE("sequence cross entropy: labels, options, and nothing") {
  edl::shape const output{1, 4, 5};
  CHECK(sequence_cross_entropy::labels(output) == 4);
  CHECK(sequence_cross_entropy::labels({3, 4, 5}) == 12);
  CHECK(sequence_cross_entropy::valid(-1, output));
  CHECK(sequence_cross_entropy::valid(4, output));
  CHECK(!sequence_cross_entropy::valid(5, output));
  CHECK(!sequence_cross_entropy::valid(-2, output));
  CHECK(!sequence_cross_entropy{.label_smoothing = -0.1f}.options_fit(output));
  CHECK(!sequence_cross_entropy{.class_weights = {1, 2}}.options_fit(output));
  CHECK(check::value(sequence_cross_entropy{}, output, 0, std::vector<float>{}, labels{}) == 0);
}

}  // namespace loss_sequence_cross_entropy_test
