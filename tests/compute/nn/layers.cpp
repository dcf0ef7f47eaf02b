// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layers.hpp"

#include <doctest/doctest.h>

namespace layers_test {

TEST_CASE("a network is a value of the compiler's") {
  namespace nn = edl::nn;
  static constexpr auto net = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 3}, nn::softmax{});
  static_assert(net.input == edl::shape{1, 1, 4});
  static_assert(nn::count(net.body, net.input).parameters == 15);
  CHECK(net.body.output(net.input) == edl::shape{1, 1, 3});
}

}  // namespace layers_test
