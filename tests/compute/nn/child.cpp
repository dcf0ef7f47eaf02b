// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/child.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "edl/compute/nn/layers.hpp"

namespace child_test {

namespace nn = edl::nn;

TEST_CASE("a container's memory goes to its children in order") {
  auto const first = nn::dense{.units = 2};
  auto const second = nn::batch_norm{};
  auto const both = nn::sequential(first, second);
  edl::shape const in{1, 1, 3};
  auto const n = nn::count(both, in);
  std::vector<float> parameters(n.parameters), state(n.state), saved(both.saved(in, 4));
  nn::forward_args<float> a{in, both.output(in), 4, {}, parameters, state, {}, saved};
  nn::forward_shares shares(a);
  auto const own = shares.next(first, in, {}, {});
  CHECK(own.parameters.data() == parameters.data());
  CHECK(own.parameters.size() == 8);
  CHECK(own.state.empty());
  auto const next = shares.next(second, {1, 1, 2}, {}, {});
  CHECK(next.parameters.data() == parameters.data() + 8);
  CHECK(next.parameters.size() == 4);
  CHECK(next.state.data() == state.data());
  CHECK(next.state.size() == 4);
  CHECK(next.saved.size() == 4);
}

TEST_CASE("a container asks for what its children keep, and the most that one uses") {
  auto const c =
      nn::sequential(nn::dropout{.rate = 0.1f}, nn::conv2d{.filters = 1, .kernel = 2}, nn::batch_norm{});
  edl::shape const in{3, 3, 2};
  CHECK(nn::saved_by_children(c, in, 8) == nn::rounded(3 * 3 * 2 * 8 / 4) + nn::rounded(2));
  CHECK(nn::scratch_of_children(nn::sum(c, nn::relu{}), in, 8) == nn::scratch_of(c, in, 8));
}

}  // namespace child_test
