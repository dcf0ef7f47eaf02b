// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/dropout.hpp"

#include "compute/nn/harness.hpp"

namespace dropout_test {

namespace nn = edl::nn;

TEST_CASE("gradients of dropout") {
  check_gradients(nn::dropout{.rate = 0.4f}, {3, 2, 5});
  check_gradients(nn::dropout{.rate = 0.4f}, {3, 2, 5}, edl::mode::evaluation);
}

TEST_CASE("equal streams drop equally, others do not; only training drops") {
  lone_layer<nn::dropout> h{.l = {.rate = 0.5f}, .in = {8, 8, 2}};
  h.forward();
  auto const first = h.y;
  h.forward();
  CHECK(h.y == first);
  h.random.step += 1;
  h.forward();
  CHECK(h.y != first);
  h.mode = edl::mode::prediction;
  h.forward();
  CHECK(h.y == h.x);
}

TEST_CASE("a rate of one leaves nothing, and does not fit") {
  CHECK(nn::dropout{.rate = 1}.check({1, 1, 1}) == edl::fit::option_out_of_range);
  CHECK(nn::dropout{.rate = -0.1f}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

}  // namespace dropout_test
