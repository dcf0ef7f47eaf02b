// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/scale.hpp"

#include "compute/nn/harness.hpp"

namespace scale_test {

namespace nn = edl::nn;

TEST_CASE("scale, and its gradients") {
  lone_layer<nn::scale> h{.l = {.factor = -0.25f}, .in = {1, 1, 2}, .batch = 1};
  h.x = {8, -2};
  h.forward();
  CHECK(h.y == std::vector<double>{-2, 0.5});
  check_gradients(nn::scale{.factor = 3}, {3, 2, 5});
}

}  // namespace scale_test
