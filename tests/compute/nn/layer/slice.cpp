// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/slice.hpp"

#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/layer/parallel.hpp"
#include "edl/compute/nn/layer/sequential.hpp"

namespace slice_test {

namespace nn = edl::nn;

TEST_CASE("a slice is some channels of each place; the others get no gradient") {
  check_gradients(nn::slice{.first = 1, .count = 2}, {2, 2, 4});
  check_gradients(nn::concat(nn::slice{.first = 0, .count = 1},
                             nn::sequential(nn::slice{.first = 1, .count = 3}, nn::tanh{})),
                  {1, 2, 4});
  lone_layer<std::remove_cvref_t<decltype(nn::slice{.first = 1, .count = 2})>> h{
      .l = nn::slice{.first = 1, .count = 2}, .in = {2, 1, 3}, .batch = 1};
  CHECK(h.out == edl::shape{2, 1, 2});
  h.x = {1, 2, 3, 4, 5, 6};
  h.forward();
  CHECK(h.y == std::vector<double>{2, 3, 5, 6});
}

TEST_CASE("a slice that is not all within the channels does not fit") {
  for (nn::slice const s : {nn::slice{.first = 3, .count = 2}, nn::slice{.first = -1, .count = 2},
                            nn::slice{.first = 0, .count = 0}})
    CHECK(s.check({2, 2, 4}) == edl::fit::option_out_of_range);
  CHECK(nn::slice{.first = 3}.check({2, 2, 4}) == edl::fit::fits);
}

}  // namespace slice_test
