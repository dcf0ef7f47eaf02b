// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/relu.hpp"

#include "nn/harness.hpp"

namespace relu_test {

namespace nn = edl::nn;

TEST_CASE("gradients of relu") { check_gradients(nn::relu{}, {3, 2, 5}); }

}  // namespace relu_test
