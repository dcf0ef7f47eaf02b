// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/log_softmax.hpp"

#include "nn/harness.hpp"

namespace log_softmax_test {

namespace nn = edl::nn;

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

}  // namespace log_softmax_test
