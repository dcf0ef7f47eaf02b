// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/average_pool.hpp"

#include "nn/harness.hpp"

namespace average_pool_test {

namespace nn = edl::nn;

TEST_CASE("gradients of average_pool") {
  check_gradients(nn::average_pool{.window = 2}, {4, 5, 3});
  check_gradients(nn::average_pool{.window = 3, .stride = 2, .padding = nn::padding::same}, {5, 6, 2});
  check_gradients(nn::average_pool{.window = {2, 1}, .stride = {1, 2}}, {4, 5, 3});
}

TEST_CASE("the stride is the window's unless it is given") {
  CHECK(nn::average_pool{.window = 2}.output({5, 4, 3}) == edl::shape{2, 2, 3});
  CHECK(nn::average_pool{.window = 3, .stride = 1}.output({5, 4, 3}) == edl::shape{3, 2, 3});
  CHECK(nn::average_pool{.window = 2, .padding = nn::padding::same}.output({5, 4, 3}) == edl::shape{3, 2, 3});
}

TEST_CASE("why average_pool does not fit") {
  CHECK(nn::average_pool{.window = 5}.check({4, 9, 1}) == edl::fit::window_exceeds_input);
  CHECK(nn::average_pool{.window = 0}.check({4, 9, 1}) == edl::fit::option_out_of_range);
}

}  // namespace average_pool_test
