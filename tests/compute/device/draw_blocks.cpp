// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/draw_blocks.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace draw_blocks_test {

TEST_CASE("blocks that are drawn side by side are those of the stream") {
  edl::random_stream const random{7, 3};
  constexpr std::uint64_t first = (std::uint64_t{1} << 32) - 2;
  std::array<std::uint32_t, 256> drawn{}, plain{};
  edl::detail::draw_blocks(random, first, drawn);
  edl::detail::draw_side_by_side(random, first, plain);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i] == random.bits(4 * first + i));
  CHECK(plain == drawn);
}

TEST_CASE("factors of dropout follow from the element, whatever is asked for before and beside it") {
  edl::random_stream const random{7, 3};
  edl::detail::drawn_factors<double> factors(random, 0.25f);
  for (std::uint64_t const first : {0, 250, 100, 3'000, 0}) {
    std::vector<double> to(300);
    factors(first, to.size(), to.data());
    for (std::size_t i = 0; i < to.size(); ++i)
      CHECK(to[i] == (random.uniform(first + i) < 0.25f ? 0 : 1 / 0.75));
  }
}

}  // namespace draw_blocks_test
