// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"
#include "edl/compute/nn/loss/softmax_focal.hpp"

namespace loss_softmax_focal_test {

using edl::nn::softmax_focal;
using labels = std::vector<std::int32_t>;

TEST_CASE("softmax focal: the formula with probabilities") {
  auto const x = check::normal<double>(20, 1, 2);
  labels const y{0, 3, 1, 1, 2};
  for (float const gamma : {0.5f, 1.0f, 2.0f, 3.5f}) {
    double expected = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += std::exp(x[4 * i + k]);
      double const p = std::exp(x[4 * i + std::size_t(y[i])]) / sum;
      expected -= std::pow(1 - p, double(gamma)) * std::log(p);
    }
    CHECK(check::value(softmax_focal{.gamma = gamma}, {.channels = 4}, 5, x, y) ==
          doctest::Approx(expected / 5).epsilon(1e-12));
    check::gradient(softmax_focal{.gamma = gamma}, {.channels = 4}, 5, x, y);
    check::gradient(softmax_focal{gamma, {1, 2, 0.5f, 0}}, {.channels = 4}, 5, x, y);
  }
}

TEST_CASE("softmax focal: without focus it is cross entropy") {
  auto const x = check::normal<double>(20, 2, 3);
  labels const y{0, 3, 1, 1, 2};
  CHECK(check::value(softmax_focal{.gamma = 0}, {.channels = 4}, 5, x, y) ==
        doctest::Approx(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 4}, 5, x, y)));
  check::gradient(softmax_focal{.gamma = 0}, {.channels = 4}, 5, x, y);
}

TEST_CASE("softmax focal: extreme logits") {
  std::vector<float> const x{1e4f, -1e4f, -1e4f, 1e4f};
  for (float const gamma : {0.0f, 0.5f, 2.0f}) {
    std::vector<float> dx(4);
    CHECK(softmax_focal{.gamma = gamma}({.channels = 2}, 2, edl::view<float>(x),
                                        edl::view<std::int32_t>(labels{0, 0}), dx) == doctest::Approx(1e4));
    CHECK(dx == std::vector<float>{0, 0, -0.5f, 0.5f});
  }
}

TEST_CASE("softmax focal: labels are classes, and options have ranges") {
  CHECK(check::value(softmax_focal{}, {.channels = 4}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(softmax_focal::valid(3, {.channels = 4}));
  CHECK(!softmax_focal::valid(4, {.channels = 4}));
  CHECK(!softmax_focal::valid(-1, {.channels = 4}));
  CHECK(!softmax_focal{.gamma = -1}.options_fit({.channels = 4}));
  CHECK(!softmax_focal{.class_weights = {1, 2}}.options_fit({.channels = 4}));
}

}  // namespace loss_softmax_focal_test
