// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/kullback_leibler.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"

namespace loss_kullback_leibler_test {

using edl::nn::kullback_leibler;
using labels = std::vector<float>;

TEST_CASE("kullback-leibler: the formula with probabilities") {
  std::vector<double> const x{1, 2, 3, 0, -1, 0.5};
  labels const z{0.25f, 0.25f, 0.5f, 0, 0.75f, 0.25f};
  double expected = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) sum += std::exp(x[k]);
    for (std::size_t k = 3 * i; k < 3 * i + 3; ++k)
      if (z[k] > 0) expected += double(z[k]) * std::log(double(z[k]) / (std::exp(x[k]) / sum));
  }
  CHECK(check::value(kullback_leibler{}, {.channels = 3}, 2, x, z) ==
        doctest::Approx(expected / 2).epsilon(1e-13));
  // Of itself, nothing; of a certain class, cross entropy.
  CHECK(std::abs(check::value(kullback_leibler{}, {.channels = 2}, 1, std::vector<double>{0, std::log(3.0)},
                              {0.25f, 0.75f})) < 1e-15);
  CHECK(check::value(kullback_leibler{}, {.channels = 3}, 1, std::vector<double>{1, 2, 3}, {0, 1, 0}) ==
        doctest::Approx(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 3}, 1,
                                     std::vector<double>{1, 2, 3}, {1})));
}

TEST_CASE("kullback-leibler: gradients are those of central differences") {
  check::gradient(kullback_leibler{}, {.channels = 3}, 3, check::normal<double>(9, 1, 3),
                  {0.25f, 0.25f, 0.5f, 0, 1, 0, 0.125f, 0.5f, 0.375f});
}

TEST_CASE("kullback-leibler: extreme logits, a NaN, and nothing") {
  std::vector<float> const x{1e4f, -1e4f, -1e4f, 1e4f};
  std::vector<float> dx(4);
  CHECK(kullback_leibler{}({.channels = 2}, 2, edl::view<float>(x), edl::view<float>(labels{1, 0, 1, 0}),
                           dx) == doctest::Approx(1e4));
  CHECK(dx == std::vector<float>{0, 0, -0.5f, 0.5f});
  std::vector<float> const bad{std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK(std::isnan(check::value(kullback_leibler{}, {.channels = 2}, 1, bad, {0, 1})));
  CHECK(check::value(kullback_leibler{}, {.channels = 2}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(kullback_leibler::valid(1, {}));
  CHECK(!kullback_leibler::valid(-0.1f, {}));
  CHECK(!kullback_leibler::valid(1.1f, {}));
}

}  // namespace loss_kullback_leibler_test
