// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/sigmoid_cross_entropy.hpp"

namespace loss_sigmoid_cross_entropy_test {

using edl::nn::sigmoid_cross_entropy;
using labels = std::vector<float>;

TEST_CASE("sigmoid cross entropy: the formula with logarithms of probabilities") {
  auto const x = check::normal<double>(24, 1, 3);
  labels y(24);
  double expected = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    y[i] = float(i % 3) / 2;
    double const p = 1 / (1 + std::exp(-x[i]));
    expected -= double(y[i]) * std::log(p) + (1 - double(y[i])) * std::log(1 - p);
  }
  CHECK(check::value(sigmoid_cross_entropy{}, {.channels = 4}, 6, x, y) ==
        doctest::Approx(expected / 24).epsilon(1e-12));
}

TEST_CASE("sigmoid cross entropy: gradients are those of central differences") {
  check::gradient(sigmoid_cross_entropy{}, {}, 5, check::normal<double>(5, 2, 3), {0, 1, 1, 0, 0.25f});
  check::gradient(sigmoid_cross_entropy{}, {.height = 2, .channels = 2}, 2, check::normal<double>(8, 3),
                  {0, 1, 1, 0, 1, 0.5f, 0, 1});
}

TEST_CASE("sigmoid cross entropy: label smoothing moves labels towards 1/2") {
  auto const x = check::normal<double>(6, 4, 3);
  labels const y{0, 1, 0.25f, 1, 0, 0.5f};
  labels moved(6);
  for (std::size_t i = 0; i < 6; ++i) moved[i] = y[i] * 0.75f + 0.125f;
  CHECK(check::value(sigmoid_cross_entropy{.label_smoothing = 0.25f}, {}, 6, x, y) ==
        doctest::Approx(check::value(sigmoid_cross_entropy{}, {}, 6, x, moved)).epsilon(1e-14));
  check::gradient(sigmoid_cross_entropy{.label_smoothing = 0.25f}, {.channels = 2}, 3, x, y);
  std::vector<float> const far{1e4f, -1e4f};
  std::vector<float> dx(2);
  CHECK(sigmoid_cross_entropy{.label_smoothing = 0.25f}(
            {}, 2, edl::view<float>(far), edl::view<float>(labels{1, 0}), dx) == doctest::Approx(1250));
  CHECK(dx == std::vector<float>{0.0625f, -0.0625f});
}

TEST_CASE("sigmoid cross entropy: large logits do not overflow") {
  std::vector<float> const x{1e30f, -1e30f, 1000, -1000};
  std::vector<float> dx(4);
  labels const y{1, 0, 0, 1};
  CHECK(sigmoid_cross_entropy{}({}, 4, edl::view<float>(x), edl::view<float>(y), dx) == doctest::Approx(500));
  CHECK(dx == std::vector<float>{0, 0, 0.25f, -0.25f});
}

TEST_CASE("sigmoid cross entropy: an empty batch has no loss, labels are probabilities") {
  CHECK(check::value(sigmoid_cross_entropy{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(sigmoid_cross_entropy::valid(0, {}));
  CHECK(sigmoid_cross_entropy::valid(1, {}));
  CHECK(!sigmoid_cross_entropy::valid(1.001f, {}));
  CHECK(!sigmoid_cross_entropy::valid(-0.001f, {}));
  CHECK(!sigmoid_cross_entropy::valid(std::numeric_limits<float>::quiet_NaN(), {}));
}

}  // namespace loss_sigmoid_cross_entropy_test
