// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/pools.hpp"

#include "compute/nn/harness.hpp"

namespace pools_test {

namespace nn = edl::nn;

TEST_CASE("gradients of max_pool") {
  check_gradients(nn::max_pool{.window = 2}, {4, 5, 3});
  check_gradients(nn::max_pool{.window = 3, .stride = 2, .padding = nn::padding::same}, {5, 6, 2});
  check_gradients(nn::max_pool{.window = {2, 1}, .stride = {1, 2}}, {4, 5, 3});
}

TEST_CASE("the stride is the window's unless it is given") {
  CHECK(nn::max_pool{.window = 2}.output({5, 4, 3}) == edl::shape{2, 2, 3});
  CHECK(nn::max_pool{.window = 3, .stride = 1}.output({5, 4, 3}) == edl::shape{3, 2, 3});
  CHECK(nn::max_pool{.window = 2, .padding = nn::padding::same}.output({5, 4, 3}) == edl::shape{3, 2, 3});
}

TEST_CASE("why max_pool does not fit") {
  CHECK(nn::max_pool{.window = 5}.check({4, 9, 1}) == edl::fit::window_exceeds_input);
  CHECK(nn::max_pool{.window = 0}.check({4, 9, 1}) == edl::fit::option_out_of_range);
}

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

TEST_CASE("gradients of global_max_pool") { check_gradients(nn::global_max_pool{}, {3, 2, 5}); }

TEST_CASE("the greatest of each channel") {
  lone_layer<nn::global_max_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 30, 3, 10};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 30});
}

TEST_CASE("gradients of global_average_pool") { check_gradients(nn::global_average_pool{}, {3, 2, 5}); }

TEST_CASE("the mean of each channel") {
  lone_layer<nn::global_average_pool> h{.l = {}, .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{1, 1, 2});
  h.x = {1, 10, 3, 30};
  h.forward();
  CHECK(h.y == std::vector<double>{2, 20});
}

TEST_CASE("a pool over everything has one place") {
  auto const g = edl::nn::detail::pool_whole({5, 3, 2});
  CHECK(g.out == edl::shape{1, 1, 2});
  CHECK(g.window == edl::extent{5, 3});
  CHECK(g.before == edl::extent{0, 0});
}

}  // namespace pools_test
