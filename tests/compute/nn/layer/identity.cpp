// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/identity.hpp"

#include "compute/nn/harness.hpp"

namespace identity_test {

namespace nn = edl::nn;

TEST_CASE("gradients of identity") { check_gradients(nn::identity{}, {3, 2, 5}); }

}  // namespace identity_test
