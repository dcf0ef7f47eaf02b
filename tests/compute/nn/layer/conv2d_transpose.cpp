// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/conv2d_transpose.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"

namespace conv2d_transpose_test {

namespace nn = edl::nn;

TEST_CASE("shapes and variables of a transposed convolution") {
  nn::conv2d_transpose const valid{.filters = 8, .kernel = 3, .stride = 2};
  CHECK(valid.output({5, 4, 3}) == edl::shape{11, 9, 8});
  CHECK(nn::count(valid, {5, 4, 3}).parameters == 3 * 3 * 8 * 3 + 8);
  nn::conv2d_transpose const same{
      .filters = 8, .kernel = {3, 5}, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  CHECK(same.output({5, 4, 3}) == edl::shape{10, 8, 8});
  CHECK(nn::count(same, {5, 4, 3}).parameters == 3 * 5 * 8 * 3);
  CHECK(nn::conv2d_transpose{.filters = 1, .kernel = 1, .stride = 3}.output({2, 2, 1}) ==
        edl::shape{6, 6, 1});
}

TEST_CASE("a transposed convolution puts the kernel down at each place, times the input there") {
  lone_layer<nn::conv2d_transpose> h{
      .l = {.filters = 1, .kernel = {1, 3}, .stride = {1, 2}}, .in = {1, 2, 1}, .batch = 1};
  h.x = {1, 10};
  h.parameters = {1, 2, 3, /*bias*/ 0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{1.5, 2.5, 3 + 10 + 0.5, 20.5, 30.5});
}

TEST_CASE("it is what a convolution does to the gradient of its input") {
  nn::conv2d const forward{
      .filters = 3, .kernel = 3, .stride = 2, .padding = nn::padding::same, .use_bias = false};
  lone_layer<nn::conv2d> there{.l = forward, .in = {6, 4, 2}};
  there.forward();
  there.backward();
  lone_layer<nn::conv2d_transpose> back{
      .l = {.filters = 2, .kernel = 3, .stride = 2, .padding = nn::padding::same, .use_bias = false},
      .in = {3, 2, 3},
      .cpu = edl::basic_cpu<double>({.threads = 3})};
  back.x = there.dy;
  back.parameters = there.parameters;
  back.forward();
  CHECK(greatest_difference(back.y, there.dx) < 1e-12);
}

TEST_CASE("gradients of a transposed convolution") {
  check_gradients(nn::conv2d_transpose{.filters = 4, .kernel = 3}, {4, 3, 2});
  check_gradients(
      nn::conv2d_transpose{.filters = 3, .kernel = {2, 3}, .stride = {2, 1}, .padding = nn::padding::same},
      {3, 4, 4});
  check_gradients(nn::conv2d_transpose{.filters = 2, .kernel = 2, .stride = 3, .use_bias = false}, {3, 3, 4});
}

TEST_CASE("why a transposed convolution does not fit") {
  CHECK(nn::conv2d_transpose{}.check({4, 4, 4}) == edl::fit::option_out_of_range);
  CHECK(nn::conv2d_transpose{.filters = 3, .stride = 0}.check({4, 4, 4}) == edl::fit::option_out_of_range);
}

}  // namespace conv2d_transpose_test
