// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/compressed_interaction.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace compressed_interaction_test {

namespace nn = edl::nn;

TEST_CASE("a compressed interaction sums weighted products of vectors") {
  lone_layer<nn::compressed_interaction> h{.l = {.layers = 2, .maps = 1}, .in = {1, 2, 2}, .batch = 1};
  CHECK(h.counts.parameters == 2 * 2 * 1 + 1 * 2 * 1);
  h.x = {1, 2, /*second vector*/ 3, -1};
  h.parameters = {1, 0, 2, 0.5, /*second layer*/ 1, -1};
  h.forward();
  // x^1 = 1·(1, 4) + 2·(3, -2) + 0.5·(9, 1) = (11.5, 0.5); x^2 = x^1 ∘ (1, 2) - x^1 ∘ (3, -1) = (-23, 1.5)
  CHECK(h.y.at(0) == doctest::Approx(12));
  CHECK(h.y.at(1) == doctest::Approx(-21.5));
}

TEST_CASE("gradients of compressed interactions") {
  for (int const layers : {1, 2, 3}) {
    nn::compressed_interaction const l{.layers = layers, .maps = 3};
    check_gradients(l, {1, 4, 2});
    check_gradients(l, {2, 2, 3});
    check_gradients(nn::sequential(nn::dense{.units = 6}, l, nn::tanh{}), {1, 1, 4});
  }
}

TEST_CASE("rows beyond those that are multiplied at a time are the same") {
  nn::compressed_interaction const l{.layers = 2, .maps = 2};
  lone_layer<nn::compressed_interaction> one{.l = l, .in = {1, 2, 3}, .batch = 1};
  lone_layer<nn::compressed_interaction> many{.l = l, .in = {1, 2, 3}, .batch = 200};
  for (std::size_t i = 0; i < one.x.size(); ++i) one.x[i] = 0.25 * double(i) - 1;
  for (std::size_t i = 0; i < many.x.size(); ++i) many.x[i] = one.x[i % one.x.size()];
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    one.parameters[i] = many.parameters[i] = 0.1 * double(i) - 0.3;
  one.forward();
  many.forward();
  for (std::size_t i = 0; i < many.y.size(); ++i)
    CHECK(many.y[i] == doctest::Approx(one.y[i % one.y.size()]));
}

TEST_CASE("a compressed interaction without layers or maps does not fit") {
  CHECK(nn::compressed_interaction{.layers = 0}.check({1, 2, 4}) == edl::fit::option_out_of_range);
  CHECK(nn::compressed_interaction{.maps = 0}.check({1, 2, 4}) == edl::fit::option_out_of_range);
}

}  // namespace compressed_interaction_test
