// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/layer_norm.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace layer_norm_test {

namespace nn = edl::nn;

TEST_CASE("layer normalisation gives each place mean 0 and variance 1, then gamma and beta") {
  lone_layer<nn::layer_norm> h{.l = {.epsilon = 1e-12f}, .in = {1, 2, 2}, .batch = 1};
  h.x = {1, 3, -10, 10};
  h.parameters = {1, 2, 0, 5};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx(-1));
  CHECK(h.y.at(1) == doctest::Approx(7));
  CHECK(h.y.at(2) == doctest::Approx(-1));
  CHECK(h.y.at(3) == doctest::Approx(7));
}

TEST_CASE("gradients of layer normalisation") {
  check_gradients(nn::layer_norm{}, {1, 1, 6});
  check_gradients(nn::layer_norm{.epsilon = 0.5f}, {2, 3, 4});
  check_gradients(nn::sequential(nn::dense{.units = 5}, nn::layer_norm{}, nn::tanh{}), {1, 1, 4});
}

TEST_CASE("a place whose channels are all equal is beta, and its gradient is finite") {
  lone_layer<nn::layer_norm> h{.l = {}, .in = {1, 1, 3}, .batch = 1};
  h.x = {4, 4, 4};
  h.parameters = {1, 1, 1, 0.5, 0, -0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{0.5, 0, -0.5});
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

TEST_CASE("layer normalisation needs an epsilon") {
  CHECK(nn::layer_norm{.epsilon = 0}.check({1, 1, 3}) == edl::fit::option_out_of_range);
}

}  // namespace layer_norm_test
