// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/carve.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>

namespace carve_test {

TEST_CASE("an arena is handed out from its start") {
  std::array<float, 40> arena{};
  edl::nn::carver all(std::span<float>{arena});
  CHECK(all.next(3).data() == arena.data());
  auto const part = all.aligned(5);
  CHECK(part.data() == arena.data() + 3);
  CHECK(part.size() == 5);
  CHECK(all.rest().data() == arena.data() + 19);
  CHECK(all.rest().size() == 21);
  CHECK(edl::nn::rounded(0) == 0);
  CHECK(edl::nn::rounded(16) == 16);
}

}  // namespace carve_test
