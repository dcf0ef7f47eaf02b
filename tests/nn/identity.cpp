// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/identity.hpp"

#include "nn/harness.hpp"

namespace identity_test {

namespace nn = edl::nn;

TEST_CASE("gradients of identity") { check_gradients(nn::identity{}, {3, 2, 5}); }

}  // namespace identity_test
