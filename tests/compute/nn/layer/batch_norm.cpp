// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/batch_norm.hpp"

#include <vector>

#include "compute/nn/harness.hpp"

namespace batch_norm_test {

namespace nn = edl::nn;

TEST_CASE("gradients of batch norm, through the batch's statistics and with the carried ones") {
  check_gradients(nn::batch_norm{}, {3, 2, 4}, edl::mode::training);
  check_gradients(nn::batch_norm{}, {3, 2, 4}, edl::mode::evaluation);
  check_gradients(nn::batch_norm{}, {1, 1, 5}, edl::mode::training, 4);
}

TEST_CASE("gradients without a gamma, and with a gain of beta") {
  check_gradients(nn::batch_norm{.scale = false}, {3, 2, 4}, edl::mode::training);
  check_gradients(nn::batch_norm{.shift_gain = 8}, {3, 2, 4}, edl::mode::training);
  check_gradients(nn::batch_norm{.scale = false, .shift_gain = 8}, {3, 2, 4}, edl::mode::evaluation);
  auto const n = nn::count(nn::batch_norm{.scale = false}, {3, 3, 7});
  CHECK(n.parameters == 7);
  CHECK(n.state == 14);
  CHECK(nn::batch_norm{.shift_gain = 0}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("only training moves the carried values") {
  lone_layer<nn::batch_norm> h{.l = {.momentum = 0.5f}, .in = {1, 1, 1}, .batch = 2};
  h.x = {1, 5};
  h.parameters = {1, 0};
  h.state = {1, 1};
  for (auto m : {edl::mode::evaluation, edl::mode::prediction}) {
    h.mode = m;
    h.forward();
    CHECK(h.state == std::vector<double>{1, 1});
    CHECK(h.y[0] == doctest::Approx(0));
  }
  h.mode = edl::mode::training;
  h.forward();
  CHECK(h.state == std::vector<double>{2, 2.5});
  CHECK(h.y[0] == doctest::Approx(-1).epsilon(1e-3));
}

TEST_CASE("variables of batch norm") {
  auto const n = nn::count(nn::batch_norm{}, {3, 3, 7});
  CHECK(n.parameters == 14);
  CHECK(n.state == 14);
  CHECK(nn::batch_norm{.momentum = 2}.check({1, 1, 1}) == edl::fit::option_out_of_range);
  CHECK(nn::batch_norm{.epsilon = 0}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

}  // namespace batch_norm_test
