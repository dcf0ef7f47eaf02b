// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/softmax.hpp"

#include "nn/harness.hpp"

namespace softmax_test {

namespace nn = edl::nn;

TEST_CASE("gradients of softmax") { check_gradients(nn::softmax{}, {3, 2, 5}); }

TEST_CASE("softmax is over the channels of each place") {
  lone_layer<nn::softmax> h{.l = {}, .in = {2, 2, 3}, .batch = 1};
  h.forward();
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(h.y[3 * i] + h.y[3 * i + 1] + h.y[3 * i + 2] == doctest::Approx(1));
}

}  // namespace softmax_test
