// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/gelu.hpp"

#include "nn/harness.hpp"

namespace gelu_test {

namespace nn = edl::nn;

TEST_CASE("gradients of gelu") { check_gradients(nn::gelu{}, {3, 2, 5}); }

}  // namespace gelu_test
