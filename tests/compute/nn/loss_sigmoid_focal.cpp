// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/sigmoid_cross_entropy.hpp"
#include "edl/compute/nn/loss/sigmoid_focal.hpp"

namespace loss_sigmoid_focal_test {

using edl::nn::sigmoid_focal;
using labels = std::vector<float>;

TEST_CASE("sigmoid focal: the formula with probabilities") {
  auto const x = check::normal<double>(24, 1, 2);
  labels y(24);
  for (float const gamma : {0.5f, 1.0f, 2.0f, 3.5f}) {
    double expected = 0;
    for (std::size_t i = 0; i < 24; ++i) {
      y[i] = i % 3 == 0;
      double const p = 1 / (1 + std::exp(-x[i])), right = y[i] > 0 ? p : 1 - p;
      expected -= (y[i] > 0 ? 0.25 : 0.75) * std::pow(1 - right, double(gamma)) * std::log(right);
    }
    CHECK(check::value(sigmoid_focal{.gamma = gamma}, {.channels = 4}, 6, x, y) ==
          doctest::Approx(expected / 24).epsilon(1e-12));
    check::gradient(sigmoid_focal{.gamma = gamma, .alpha = 0.6f}, {.channels = 4}, 6, x, y);
  }
}

TEST_CASE("sigmoid focal: without focus it is half of cross entropy") {
  auto const x = check::normal<double>(8, 2, 3);
  labels const y{0, 1, 1, 0, 1, 0, 0, 1};
  sigmoid_focal const loss{.gamma = 0, .alpha = 0.5f};
  CHECK(check::value(loss, {}, 8, x, y) ==
        doctest::Approx(check::value(edl::nn::sigmoid_cross_entropy{}, {}, 8, x, y) / 2));
  check::gradient(loss, {}, 8, x, y);
}

TEST_CASE("sigmoid focal: extreme logits") {
  std::vector<float> const x{1e4f, -1e4f, 1e4f, -1e4f};
  labels const y{1, 0, 0, 1};
  for (float const gamma : {0.0f, 0.5f, 2.0f}) {
    std::vector<float> dx(4);
    sigmoid_focal const loss{.gamma = gamma, .alpha = 0.5f};
    CHECK(loss({}, 4, edl::view<float>(x), edl::view<float>(y), dx) == doctest::Approx(2500));
    CHECK(dx == std::vector<float>{0, 0, 0.125f, -0.125f});
  }
}

TEST_CASE("sigmoid focal: labels are 0 or 1, and options have ranges") {
  CHECK(check::value(sigmoid_focal{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(sigmoid_focal::valid(1, {}));
  CHECK(!sigmoid_focal::valid(0.5f, {}));
  CHECK(sigmoid_focal{}.options_fit({}));
  CHECK(!sigmoid_focal{.gamma = -1}.options_fit({}));
  CHECK(!sigmoid_focal{.alpha = 2}.options_fit({}));
}

}  // namespace loss_sigmoid_focal_test
