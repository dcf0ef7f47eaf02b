// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/softplus.hpp"

#include "nn/harness.hpp"

namespace softplus_test {

namespace nn = edl::nn;

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

}  // namespace softplus_test
