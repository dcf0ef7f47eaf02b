// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/input.hpp"

#include <doctest/doctest.h>

namespace input_test {

TEST_CASE("inputs are shapes") {
  CHECK(edl::nn::image{.height = 28, .width = 27, .channels = 3}.input() == edl::shape{28, 27, 3});
  CHECK(edl::nn::features{.count = 13}.input() == edl::shape{1, 1, 13});
  CHECK(edl::nn::ids{.count = 5}.input() == edl::shape{1, 1, 5});
}

}  // namespace input_test
