// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/activations.hpp"

#include "compute/nn/harness.hpp"

namespace activations_test {

namespace nn = edl::nn;

TEST_CASE("gradients of relu") { check_gradients(nn::relu{}, {3, 2, 5}); }

TEST_CASE("gradients of tanh") { check_gradients(nn::tanh{}, {3, 2, 5}); }

TEST_CASE("gradients of sigmoid") { check_gradients(nn::sigmoid{}, {3, 2, 5}); }

TEST_CASE("gradients of gelu") { check_gradients(nn::gelu{}, {3, 2, 5}); }

TEST_CASE("gradients of silu") { check_gradients(nn::silu{}, {3, 2, 5}); }

TEST_CASE("silu is its input times the sigmoid of it") {
  lone_layer<nn::silu> h{.l = {}, .in = {1, 1, 3}, .batch = 1};
  h.x = {0, 2, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 0);
  CHECK(h.y.at(1) == doctest::Approx(2 / (1 + std::exp(-2.0))));
  CHECK(h.y.at(2) == 0);
}

TEST_CASE("gradients of softplus") { check_gradients(nn::softplus{}, {3, 2, 5}); }

TEST_CASE("softplus does not overflow") {
  lone_layer<nn::softplus> h{.l = {}, .in = {1, 1, 4}, .batch = 1};
  h.x = {0, 1e4, -1e4, 1};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx(std::log(2.0)));
  CHECK(h.y.at(1) == 1e4);
  CHECK(h.y.at(2) == 0);
  CHECK(h.y.at(3) == doctest::Approx(std::log(1 + std::exp(1.0))));
}

TEST_CASE("gradients of leaky_relu") { check_gradients(nn::leaky_relu{.slope = 0.1f}, {3, 2, 5}); }

TEST_CASE("a negative slope does not fit") {
  CHECK(nn::leaky_relu{.slope = -1}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("gradients of elu") {
  check_gradients(nn::elu{}, {3, 2, 5});
  check_gradients(nn::elu{.alpha = 0.3f}, {3, 2, 5});
  check_gradients(nn::elu{.alpha = 0}, {1, 1, 7});
}

TEST_CASE("elu goes to minus alpha") {
  lone_layer<nn::elu> h{.l = {.alpha = 0.5f}, .in = {1, 1, 3}, .batch = 1};
  h.x = {3, -1, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 3);
  CHECK(h.y.at(1) == doctest::Approx(0.5 * (std::exp(-1.0) - 1)));
  CHECK(h.y.at(2) == -0.5);
}

TEST_CASE("a negative alpha does not fit") {
  CHECK(nn::elu{.alpha = -1}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("gradients of softmax") { check_gradients(nn::softmax{}, {3, 2, 5}); }

TEST_CASE("softmax is over the channels of each place") {
  lone_layer<nn::softmax> h{.l = {}, .in = {2, 2, 3}, .batch = 1};
  h.forward();
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(h.y[3 * i] + h.y[3 * i + 1] + h.y[3 * i + 2] == doctest::Approx(1));
}

TEST_CASE("gradients of log_softmax") {
  check_gradients(nn::log_softmax{}, {1, 1, 7});
  check_gradients(nn::log_softmax{}, {2, 3, 4});
}

TEST_CASE("log_softmax is the logarithm of a share, and does not overflow") {
  lone_layer<nn::log_softmax> h{.l = {}, .in = {1, 2, 3}, .batch = 1};
  h.x = {1, 2, 3, 1e4, -1e4, 1e4};
  h.forward();
  double const sum = std::log(std::exp(1) + std::exp(2) + std::exp(3));
  for (std::size_t k = 0; k < 3; ++k) CHECK(h.y.at(k) == doctest::Approx(h.x.at(k) - sum));
  CHECK(h.y.at(3) == doctest::Approx(-std::log(2.0)));
  CHECK(h.y.at(4) == doctest::Approx(-2e4 - std::log(2.0)));
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

}  // namespace activations_test
