// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/flatten.hpp"

#include "compute/nn/harness.hpp"

namespace flatten_test {

namespace nn = edl::nn;

TEST_CASE("gradients of flatten") { check_gradients(nn::flatten{}, {3, 2, 5}); }

TEST_CASE("flattening keeps elements and order") {
  lone_layer<nn::flatten> h{.l = {}, .in = {2, 3, 4}};
  CHECK(h.out == edl::shape{1, 1, 24});
  h.forward();
  CHECK(h.y == h.x);
}

}  // namespace flatten_test
