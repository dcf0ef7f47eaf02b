// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/silu.hpp"

#include "nn/harness.hpp"

namespace silu_test {

namespace nn = edl::nn;

TEST_CASE("gradients of silu") { check_gradients(nn::silu{}, {3, 2, 5}); }

TEST_CASE("silu is its input times the sigmoid of it") {
  lone_layer<nn::silu> h{.l = {}, .in = {1, 1, 3}, .batch = 1};
  h.x = {0, 2, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 0);
  CHECK(h.y.at(1) == doctest::Approx(2 / (1 + std::exp(-2.0))));
  CHECK(h.y.at(2) == 0);
}

}  // namespace silu_test
