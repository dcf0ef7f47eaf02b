// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/conv2d.hpp"

#include "compute/nn/harness.hpp"

namespace conv2d_test {

namespace nn = edl::nn;

TEST_CASE("shapes and variables of a convolution") {
  nn::conv2d const valid{.filters = 8, .kernel = 3};
  CHECK(valid.output({28, 27, 3}) == edl::shape{26, 25, 8});
  CHECK(nn::count(valid, {28, 27, 3}).parameters == 3 * 3 * 3 * 8 + 8);
  nn::conv2d const same{
      .filters = 8, .kernel = {3, 5}, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  CHECK(same.output({28, 27, 3}) == edl::shape{14, 14, 8});
  CHECK(nn::count(same, {28, 27, 3}).parameters == 3 * 5 * 3 * 8);
  nn::conv2d const grouped{.filters = 8, .kernel = 3, .groups = 4};
  CHECK(nn::count(grouped, {9, 9, 4}).parameters == 3 * 3 * 1 * 8 + 8);
}

TEST_CASE("why a convolution does not fit") {
  CHECK(nn::conv2d{.filters = 1, .kernel = 5}.check({4, 9, 1}) == edl::fit::kernel_exceeds_input);
  CHECK(nn::conv2d{.filters = 1, .kernel = 5, .padding = nn::padding::same}.check({4, 9, 1}) ==
        edl::fit::fits);
  CHECK(nn::conv2d{.filters = 4, .kernel = 1, .groups = 2}.check({4, 4, 3}) ==
        edl::fit::groups_do_not_divide_channels);
  CHECK(nn::conv2d{.filters = 3, .kernel = 1, .groups = 2}.check({4, 4, 4}) ==
        edl::fit::groups_do_not_divide_channels);
  CHECK(nn::conv2d{}.check({4, 4, 4}) == edl::fit::option_out_of_range);
  CHECK(nn::conv2d{.filters = 3, .stride = 0}.check({4, 4, 4}) == edl::fit::option_out_of_range);
}

TEST_CASE("TensorFlow's rule of same padding: the greater part comes after") {
  auto const g =
      nn::conv2d{.filters = 1, .kernel = 3, .stride = 2, .padding = nn::padding::same}.geometry({6, 5, 1});
  CHECK(g.before == edl::extent{0, 1});
  CHECK(g.out == edl::shape{3, 3, 1});
}

TEST_CASE("gradients of a convolution") {
  check_gradients(nn::conv2d{.filters = 4, .kernel = 3}, {6, 5, 2});
  check_gradients(
      nn::conv2d{.filters = 4, .kernel = {2, 3}, .stride = {2, 1}, .padding = nn::padding::same, .groups = 2},
      {5, 5, 4});
  check_gradients(nn::conv2d{.filters = 3, .kernel = 1, .use_bias = false}, {3, 3, 4});
}

TEST_CASE("a kernel that is not trained is carried, and the rest learns") {
  nn::conv2d const frozen{.filters = 3, .kernel = 2, .train_kernel = false};
  auto const n = nn::count(frozen, {4, 4, 2});
  CHECK(n.parameters == 3);
  CHECK(n.state == 2 * 2 * 2 * 3);
  check_gradients(frozen, {4, 4, 2});
  check_gradients(nn::conv2d{.filters = 4, .kernel = 1, .use_bias = false, .train_kernel = false}, {3, 2, 2});
}

}  // namespace conv2d_test
