// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/repeat.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/plan.hpp"

namespace repeat_test {

namespace nn = edl::nn;

namespace {

constexpr auto block = nn::residual(nn::sequential(nn::dense{.units = 3}, nn::tanh{}));

std::vector<std::string> names_in(auto const& l, edl::shape in) {
  std::vector<std::string> names;
  for (auto const& v : nn::layout_of(l, in).variables) names.push_back(v.name);
  return names;
}

}  // namespace

TEST_CASE(
    "a repeated block computes what the same chain of blocks does, with variables of its own each time") {
  lone_layer<std::remove_cvref_t<decltype(nn::repeat<3>(block))>> repeated{.l = nn::repeat<3>(block),
                                                                           .in = {1, 1, 3}};
  lone_layer<std::remove_cvref_t<decltype(nn::sequential(block, block, block))>> chained{
      .l = nn::sequential(block, block, block), .in = {1, 1, 3}};
  CHECK(repeated.counts.parameters == 3 * (3 * 3 + 3));
  repeated.forward();
  chained.forward();
  CHECK(repeated.y == chained.y);
  repeated.backward();
  chained.backward();
  CHECK(repeated.gradients == chained.gradients);
}

TEST_CASE("variables of a repeated block, and of a named one, have their names") {
  auto const l = nn::sequential(nn::named<"stem">(nn::dense{.units = 3}, nn::tanh{}), nn::repeat<2>(block),
                                nn::repeat<1>(block));
  CHECK(names_in(l, {1, 1, 4}) ==
        std::vector<std::string>{"stem/dense/kernel", "stem/dense/bias", "repeat/residual/body/dense/kernel",
                                 "repeat/residual/body/dense/bias", "repeat/residual_1/body/dense/kernel",
                                 "repeat/residual_1/body/dense/bias", "repeat_1/residual/body/dense/kernel",
                                 "repeat_1/residual/body/dense/bias"});
}

TEST_CASE("a block that does not fit the second time is found") {
  auto const halves = nn::repeat<3>(nn::max_pool{.window = 2});
  CHECK(halves.check({8, 8, 1}) == edl::fit::fits);
  auto const wrong = nn::find_misfit(halves, {4, 4, 1});
  CHECK(wrong.why == edl::fit::window_exceeds_input);
  CHECK(wrong.depth == 1);
  CHECK(wrong.path[0] == 2);
  CHECK(wrong.input == edl::shape{1, 1, 1});
}

}  // namespace repeat_test
