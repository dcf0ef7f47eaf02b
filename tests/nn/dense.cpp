// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/dense.hpp"

#include "nn/harness.hpp"

namespace nn = edl::nn;

TEST_CASE("a dense layer flattens what it gets") {
  nn::dense const l{.units = 10};
  CHECK(l.output({3, 4, 5}) == edl::shape{1, 1, 10});
  CHECK(nn::count(l, {3, 4, 5}).parameters == 60 * 10 + 10);
  CHECK(nn::count(nn::dense{.units = 10, .use_bias = false}, {3, 4, 5}).parameters == 600);
  CHECK(nn::dense{}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

TEST_CASE("a dense layer of each place has one kernel for all places") {
  nn::dense const l{.units = 2, .each_place = true};
  CHECK(l.output({3, 4, 5}) == edl::shape{3, 4, 2});
  CHECK(nn::count(l, {3, 4, 5}).parameters == 5 * 2 + 2);
  harness<nn::dense> h{.l = l, .in = {1, 2, 2}, .batch = 1};
  h.x = {1, 2, 3, 4};
  h.parameters = {1, 0, 1, 1, /*bias*/ 0, 10};
  h.forward();
  CHECK(h.y == std::vector<double>{3, 12, 7, 14});
}

TEST_CASE("gradients of a dense layer") {
  check_gradients(nn::dense{.units = 5, .each_place = true}, {2, 3, 2});
  check_gradients(nn::dense{.units = 3, .each_place = true, .use_bias = false}, {1, 4, 2});
  check_gradients(nn::dense{.units = 5}, {2, 3, 2});
  check_gradients(nn::dense{.units = 1, .use_bias = false}, {1, 1, 7}, edl::mode::training, 1);
}
