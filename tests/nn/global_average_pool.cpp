// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/global_average_pool.hpp"

#include <vector>

#include "nn/harness.hpp"

namespace global_average_pool_test {

namespace nn = edl::nn;

TEST_CASE("gradients of global_average_pool") { check_gradients(nn::global_average_pool{}, {3, 2, 5}); }

TEST_CASE("the mean of each channel") {
  lone_layer<nn::global_average_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 10, 3, 30};
  h.forward();
  CHECK(h.y == std::vector<double>{2, 20});
}

}  // namespace global_average_pool_test
