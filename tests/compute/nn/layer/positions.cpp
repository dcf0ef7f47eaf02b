// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/positions.hpp"

#include <cmath>

#include "compute/nn/harness.hpp"

namespace positions_test {

namespace nn = edl::nn;

TEST_CASE("positions add the same rows to all samples") {
  lone_layer<nn::positions> h{.l = {}, .in = {1, 2, 2}, .batch = 2};
  CHECK(h.counts.parameters == 4);
  h.x = {0, 0, 0, 0, 10, 10, 10, 10};
  h.parameters = {1, 2, 3, 4};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 3, 4, 11, 12, 13, 14});
}

TEST_CASE("of as many rows as the most places, shorter samples use the first") {
  lone_layer<nn::positions> h{.l = {.most = 4}, .in = {1, 2, 2}, .batch = 2};
  CHECK(h.counts.parameters == 8);
  h.x = {0, 0, 0, 0, 10, 10, 10, 10};
  h.parameters = {1, 2, 3, 4, 50, 60, 70, 80};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 3, 4, 11, 12, 13, 14});
  CHECK(nn::positions{.most = 4}.check({1, 5, 2}) == edl::fit::option_out_of_range);
}

TEST_CASE("gradients of positions") {
  check_gradients(nn::positions{.most = 7}, {1, 5, 3});
  check_gradients(nn::positions{}, {1, 5, 3});
  check_gradients(nn::positions{}, {2, 2, 3});
}

TEST_CASE("sines and cosines of the place are added, and the gradient passes") {
  lone_layer<nn::sinusoidal_positions> h{.l = {}, .in = {1, 3, 4}, .batch = 2};
  std::ranges::fill(h.x, 5.0);
  h.forward();
  for (std::size_t place = 0; place < 6; ++place) {
    double const p = double(place % 3);
    CHECK(h.y[place * 4] == doctest::Approx(5 + std::sin(p)));
    CHECK(h.y[place * 4 + 1] == doctest::Approx(5 + std::sin(p / 100)));
    CHECK(h.y[place * 4 + 2] == doctest::Approx(5 + std::cos(p)));
    CHECK(h.y[place * 4 + 3] == doctest::Approx(5 + std::cos(p / 100)));
  }
  check_gradients(nn::sinusoidal_positions{}, {1, 3, 4});
  CHECK(nn::sinusoidal_positions{}.check({1, 3, 5}) == edl::fit::option_out_of_range);
}

}  // namespace positions_test
