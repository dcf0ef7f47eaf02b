// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/parallel.hpp"

#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/identity.hpp"
#include "edl/compute/nn/layer/pools.hpp"
#include "edl/compute/nn/layer/sequential.hpp"

namespace parallel_test {

namespace nn = edl::nn;

TEST_CASE("gradients of branches") {
  check_gradients(
      nn::concat(
          nn::conv2d{.filters = 2, .kernel = 1}, nn::identity{},
          nn::sequential(nn::conv2d{.filters = 3, .kernel = 3, .padding = nn::padding::same}, nn::tanh{})),
      {3, 4, 2});
  check_gradients(nn::sum(nn::dense{.units = 3}, nn::sequential(nn::tanh{}, nn::dense{.units = 3}),
                          nn::dense{.units = 3}),
                  {1, 2, 2});
  // A branch that ends in a fused relu overwrites its gradient; the others get their own.
  check_gradients(nn::sum(nn::sequential(nn::dense{.units = 3}, nn::relu{}), nn::dense{.units = 3},
                          nn::sequential(nn::dense{.units = 3}, nn::relu{})),
                  {1, 2, 2});
  check_gradients(nn::concat(nn::sum(nn::tanh{}, nn::identity{}), nn::tanh{}), {2, 1, 3});
}

TEST_CASE("branches are multiplied, and each gets the product of the others") {
  check_gradients(nn::product(nn::dense{.units = 3}, nn::sequential(nn::tanh{}, nn::dense{.units = 3}),
                              nn::sequential(nn::dense{.units = 3}, nn::relu{})),
                  {1, 2, 2});
  lone_layer<std::remove_cvref_t<decltype(nn::product(nn::identity{}, nn::identity{}, nn::identity{}))>> h{
      .l = nn::product(nn::identity{}, nn::identity{}, nn::identity{}), .in = {1, 1, 2}, .batch = 1};
  h.x = {2, -3};
  h.forward();
  CHECK(h.y == std::vector<double>{8, -27});
  CHECK(nn::is_portable(nn::sum(nn::identity{}, nn::identity{}), {1, 1, 2}));
  CHECK_FALSE(nn::is_portable(nn::product(nn::identity{}, nn::identity{}), {1, 1, 2}));
}

TEST_CASE("channels stand one after the other, at every place") {
  lone_layer<std::remove_cvref_t<decltype(nn::concat(nn::identity{}, nn::max_pool{.window = 1}))>> h{
      .l = nn::concat(nn::identity{}, nn::max_pool{.window = 1}), .in = {2, 1, 2}, .batch = 1};
  CHECK(h.out == edl::shape{2, 1, 4});
  h.x = {1, 2, 3, 4};
  h.forward();
  CHECK(h.y == std::vector<double>{1, 2, 1, 2, 3, 4, 3, 4});
}

TEST_CASE("branches that cannot be merged do not fit") {
  auto const halves = nn::concat(nn::identity{}, nn::max_pool{.window = 2});
  CHECK(halves.check({4, 4, 1}) == edl::fit::branches_differ_in_shape);
  CHECK(nn::sum(nn::dense{.units = 2}, nn::dense{.units = 3}).check({1, 1, 1}) ==
        edl::fit::branches_differ_in_shape);
  CHECK(nn::concat(nn::dense{.units = 2}, nn::dense{.units = 3}).check({1, 1, 1}) == edl::fit::fits);
}

}  // namespace parallel_test
