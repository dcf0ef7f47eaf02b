// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/tanh.hpp"

#include "nn/harness.hpp"

namespace tanh_test {

namespace nn = edl::nn;

TEST_CASE("gradients of tanh") { check_gradients(nn::tanh{}, {3, 2, 5}); }

}  // namespace tanh_test
