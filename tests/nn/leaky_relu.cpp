// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/leaky_relu.hpp"

#include "nn/harness.hpp"

namespace leaky_relu_test {

namespace nn = edl::nn;

TEST_CASE("gradients of leaky_relu") { check_gradients(nn::leaky_relu{.slope = 0.1f}, {3, 2, 5}); }

TEST_CASE("a negative slope does not fit") {
  CHECK(nn::leaky_relu{.slope = -1}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

}  // namespace leaky_relu_test
