// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/elu.hpp"

#include "nn/harness.hpp"

namespace elu_test {

namespace nn = edl::nn;

TEST_CASE("gradients of elu") {
  check_gradients(nn::elu{}, {3, 2, 5});
  check_gradients(nn::elu{.alpha = 0.3f}, {3, 2, 5});
  check_gradients(nn::elu{.alpha = 0}, {1, 1, 7});
}

TEST_CASE("elu goes to minus alpha") {
  lone_layer<nn::elu> h{.l = {.alpha = 0.5f}, .in = {1, 1, 3}, .batch = 1};
  h.x = {3, -1, -1e4};
  h.forward();
  CHECK(h.y.at(0) == 3);
  CHECK(h.y.at(1) == doctest::Approx(0.5 * (std::exp(-1.0) - 1)));
  CHECK(h.y.at(2) == -0.5);
}

TEST_CASE("a negative alpha does not fit") {
  CHECK(nn::elu{.alpha = -1}.check({1, 1, 1}) == edl::fit::option_out_of_range);
}

}  // namespace elu_test
