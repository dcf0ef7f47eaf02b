// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/sigmoid.hpp"

#include "nn/harness.hpp"

namespace sigmoid_test {

namespace nn = edl::nn;

TEST_CASE("gradients of sigmoid") { check_gradients(nn::sigmoid{}, {3, 2, 5}); }

}  // namespace sigmoid_test
