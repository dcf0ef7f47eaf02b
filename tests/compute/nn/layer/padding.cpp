// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/padding.hpp"

#include <doctest/doctest.h>

namespace padding_test {

namespace nn = edl::nn;

TEST_CASE("places of a window, by TensorFlow's rules") {
  struct {
    int in, window, stride;
    nn::padding padding;
    int places, before;
  } const cases[] = {
      {28, 3, 1, nn::padding::valid, 26, 0}, {28, 3, 1, nn::padding::same, 28, 1},
      {5, 3, 2, nn::padding::same, 3, 1},    {6, 3, 2, nn::padding::same, 3, 0},
      {6, 2, 2, nn::padding::same, 3, 0},    {5, 2, 2, nn::padding::valid, 2, 0},
      {3, 5, 1, nn::padding::same, 3, 2},    {7, 1, 3, nn::padding::same, 3, 0},
      {4, 4, 1, nn::padding::same, 4, 1},
  };
  for (auto const& c : cases) {
    auto const at = nn::place(c.in, c.window, c.stride, c.padding);
    CHECK(at.places == c.places);
    CHECK(at.before == c.before);
  }
}

}  // namespace padding_test
