// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/board.hpp"
#include "edl/compute/device/placement.hpp"

namespace samples_test {

TEST_CASE("pictures are shown as the processor shows them, each as its placement says") {
  using edl::border, edl::placement, edl::shape;
  in_all_ways([](bool half) {
    gpu g(half);
    for (shape const s : {shape{4, 5, 3}, shape{8, 8, 3}, shape{1, 1, 7}, shape{3, 1, 8}, shape{40, 33, 2}}) {
      CAPTURE(s.height);
      CAPTURE(s.channels);
      std::size_t const size = s.size(), kept = 9;
      auto const from = g.draw<float>(kept * size, 1);
      std::vector<placement> const how{
          {},
          {.down = 1, .right = -2},
          {.down = -1, .right = 1, .at = border::reflect},
          {.down = 2, .right = 2, .at = border::reflect, .mirrored = 1},
          {.mirrored = 1},
          {.right = 1, .hole_top = -1, .hole_left = 1, .hole_size = 3, .mirrored = 1},
          {.down = 50, .right = -50},
          {.down = 1, .hole_top = 1, .hole_left = 1, .hole_size = 2, .contrast = 1.1f, .brightness = -0.3f},
      };
      std::vector<std::uint32_t> const rows{8, 0, 3, 3, 5, 1, 2, 4};
      std::vector<float> wanted(how.size() * size);
      for (std::size_t i = 0; i < how.size(); ++i)
        edl::place(s, edl::view<float>(from).subspan(rows[i] * size, size), how[i],
                   std::span(wanted).subspan(i * size, size));
      if (half) wanted = rounded(wanted);
      void* const y = g.activations(wanted.size());
      kernels::show(g.q, s, how.size(), g.put(from), g.put(rows), g.put(how), y);
      CHECK(g.get_activations(y, wanted.size()) == wanted);
    }
  });
}

TEST_CASE("rows go to where they are kept, and nothing else is touched") {
  for (std::size_t const width : {1, 4, 6, 3072})
    for (std::size_t const before : {0, 1}) {  // aligned or not
      CAPTURE(width);
      gpu g;
      std::vector<std::uint32_t> const rows{4, 0, 2};
      auto const from = g.draw<float>(rows.size() * width, 1);
      std::vector<float> wanted(5 * width, -1.0f);
      float* const to = g.put(wanted);
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(from.begin() + std::ptrdiff_t(i * width), width,
                    wanted.begin() + std::ptrdiff_t(rows[i] * width));
      kernels::scatter_rows(g.q, rows.size(), width, g.put(from, before), g.put(rows), to);
      CHECK(g.get(to, wanted.size()) == wanted);
    }
}

}  // namespace samples_test
