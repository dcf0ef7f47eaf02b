// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/global_max_pool.hpp"

#include <vector>

#include "nn/harness.hpp"

namespace global_max_pool_test {

namespace nn = edl::nn;

TEST_CASE("gradients of global_max_pool") { check_gradients(nn::global_max_pool{}, {3, 2, 5}); }

TEST_CASE("the greatest of each channel") {
  lone_layer<nn::global_max_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 30, 3, 10};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 30});
}

}  // namespace global_max_pool_test
