// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/residual.hpp"

#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/conv2d.hpp"
#include "edl/compute/nn/layer/dense.hpp"
#include "edl/compute/nn/layer/sequential.hpp"

namespace residual_test {

namespace nn = edl::nn;

TEST_CASE("gradients of residuals, with and without a projection") {
  check_gradients(
      nn::residual(nn::sequential(nn::dense{.units = 4}, nn::tanh{}, nn::dense{.units = 3}, nn::sigmoid{})),
      {1, 1, 3});
  check_gradients(
      nn::residual(nn::conv2d{.filters = 3, .kernel = 3, .stride = 2, .padding = nn::padding::same},
                   nn::sequential(nn::conv2d{.filters = 3, .kernel = 1, .stride = 2}, nn::tanh{})),
      {4, 5, 2});
  check_gradients(nn::residual(nn::residual(nn::tanh{}), nn::sigmoid{}), {1, 2, 3});
}

TEST_CASE("a residual adds its input") {
  lone_layer<std::remove_cvref_t<decltype(nn::residual(nn::relu{}))>> h{
      .l = nn::residual(nn::relu{}), .in = {1, 1, 2}, .batch = 1};
  h.x = {3, -4};
  h.forward();
  CHECK(h.y == std::vector<double>{6, -4});
}

TEST_CASE("branches of different shapes do not fit") {
  CHECK(nn::residual(nn::dense{.units = 4}).check({1, 1, 3}) == edl::fit::branches_differ_in_shape);
  CHECK(nn::residual(nn::dense{.units = 4}, nn::dense{.units = 4}).check({1, 1, 3}) == edl::fit::fits);
  CHECK(nn::residual(nn::dense{}).check({1, 1, 3}) == edl::fit::option_out_of_range);
}

TEST_CASE("a body that needs its result no more has it where the sum will be") {
  nn::dense const body{.units = 3};
  auto const l = nn::residual(body);
  CHECK(nn::saved_by(l, {1, 1, 3}, 4) == 0);
  CHECK(nn::saved_by(nn::residual(nn::tanh{}), {1, 1, 3}, 4) > 0);
  check_gradients(l, {1, 1, 3});
  check_gradients(nn::residual(body, nn::dense{.units = 3, .use_bias = false}), {1, 1, 2});
  check_gradients(nn::residual(body, nn::sequential(nn::dense{.units = 3}, nn::tanh{})), {1, 1, 2});
  check_gradients(nn::residual(nn::residual(body), nn::dense{.units = 3}), {1, 1, 3});
}

}  // namespace residual_test
