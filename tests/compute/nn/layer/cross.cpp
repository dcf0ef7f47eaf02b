// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/cross.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace cross_test {

namespace nn = edl::nn;

TEST_CASE("a cross layer multiplies its input by a linear map of what came before, and adds that") {
  lone_layer<nn::cross> h{.l = {.layers = 2}, .in = {1, 1, 2}, .batch = 1};
  h.x = {2, 3};
  h.parameters = {1, 0, 0, 1, /*second*/ 0, 1, 1, 0, /*biases*/ 0.5, 0, 0, 1};
  h.forward();
  // x_1 = (2 (2 + .5) + 2, 3 · 3 + 3) = (7, 12), x_2 = (2 · 12 + 7, 3 (7 + 1) + 12)
  CHECK(h.y.at(0) == doctest::Approx(31));
  CHECK(h.y.at(1) == doctest::Approx(36));
}

TEST_CASE("with vectors all inputs of a cross layer are multiplied by the same number") {
  lone_layer<nn::cross> h{.l = {.layers = 1, .vectors = true}, .in = {1, 1, 2}, .batch = 2};
  CHECK(h.counts.parameters == 4);
  h.x = {2, 3, -1, 1};
  h.parameters = {1, 2, 0.5, 0.25};
  h.forward();
  CHECK(h.y == std::vector<double>{2 * 8 + 0.5 + 2, 3 * 8 + 0.25 + 3, -1 * 1 + 0.5 - 1, 1 * 1 + 0.25 + 1});
}

TEST_CASE("gradients of cross layers") {
  for (bool const vectors : {false, true})
    for (int const layers : {1, 2, 3}) {
      nn::cross const l{.layers = layers, .vectors = vectors};
      check_gradients(l, {1, 1, 4});
      check_gradients(l, {1, 2, 3});
      check_gradients(nn::sequential(nn::dense{.units = 3}, l, nn::tanh{}), {1, 1, 4});
    }
}

TEST_CASE("a cross network without layers does not fit") {
  CHECK(nn::cross{.layers = 0}.check({1, 1, 4}) == edl::fit::option_out_of_range);
}

}  // namespace cross_test
