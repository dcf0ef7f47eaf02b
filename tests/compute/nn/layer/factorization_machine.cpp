// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/factorization_machine.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace factorization_machine_test {

namespace nn = edl::nn;

TEST_CASE("a factorisation machine adds up the products of all pairs of rows") {
  lone_layer<nn::factorization_machine> h{.l = {}, .in = {1, 3, 2}, .batch = 1};
  h.x = {1, 2, 3, 4, 5, 6};
  h.forward();
  CHECK(h.y.at(0) == doctest::Approx((3 + 8) + (5 + 12) + (15 + 24)));
}

TEST_CASE("gradients of a factorisation machine, by itself and above an embedding") {
  check_gradients(nn::factorization_machine{}, {1, 5, 3});
  check_gradients(nn::factorization_machine{}, {1, 1, 4});
  check_gradients(nn::factorization_machine{}, {1, 3, 9});
  check_gradients(nn::sequential(nn::conv2d{.filters = 3}, nn::factorization_machine{}), {2, 2, 2});
}

}  // namespace factorization_machine_test
