// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace pool_test {

namespace {
float const no_number = std::numeric_limits<float>::quiet_NaN();
}

TEST_CASE("the greatest of a window, and its gradient to the first of equals") {
  edl::basic_cpu<float> cpu;
  edl::pool_geometry const g{{2, 4, 1}, {1, 2, 1}, 2, 2, 0};
  std::vector<float> const x{1, 5, 7, 7, 5, 2, 7, -1}, dy{10, 20};
  std::vector<float> y(2), dx(8, 9);
  cpu.max_pool_forward(g, 1, x, y);
  CHECK(y == std::vector<float>{5, 7});
  cpu.max_pool_backward(g, 1, x, y, dy, dx);
  CHECK(dx == std::vector<float>{0, 10, 20, 0, 0, 0, 0, 0});
}

TEST_CASE("windows that overlap add up, and the border is no element") {
  edl::basic_cpu<float> cpu;
  edl::pool_geometry const g{{1, 3, 1}, {1, 3, 1}, {1, 3}, 1, {0, 1}};
  std::vector<float> const x{-3, -1, -2}, dy{1, 2, 4};
  std::vector<float> y(3), dx(3, 9);
  cpu.max_pool_forward(g, 1, x, y);
  CHECK(y == std::vector<float>{-1, -1, -1});
  cpu.max_pool_backward(g, 1, x, y, dy, dx);
  CHECK(dx == std::vector<float>{0, 7, 0});
  cpu.average_pool_forward(g, 1, x, y);
  CHECK(y == std::vector<float>{-2, -2, -1.5f});
  cpu.average_pool_backward(g, 1, std::vector<float>{2, 3, 4}, dx);
  CHECK(dx == std::vector<float>{2, 4, 3});
}

TEST_CASE("a NaN is the greatest, wherever it stands") {
  edl::basic_cpu<float> cpu;
  edl::pool_geometry const g{{1, 2, 2}, {1, 1, 2}, {1, 2}, 1, 0};
  std::vector<float> y(2);
  cpu.max_pool_forward(g, 1, std::vector<float>{no_number, 1, 1, no_number}, y);
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
}

TEST_CASE("the gradient finds the greatest of x, whether x or y has been rounded since") {
  edl::basic_cpu<float> cpu;
  edl::pool_geometry const g{{1, 3, 1}, {1, 1, 1}, {1, 3}, 1, 0};
  std::vector<std::int32_t> memory(edl::numbers_of_places(1, 4));
  auto const places =
      edl::find_places(std::span(memory), 1, 4, [](std::size_t, std::size_t p) { return p < 3; });
  // As bfloat16 the last two are equal, and are neither of both.
  std::vector<float> const exact{0, 1 + 0x1p-9f, 1 + 0x1.8p-9f, 9}, rounded{0, 1, 1, 9}, dy{5};
  std::vector<float> y(1), dx(4);
  auto const of = [&](std::vector<float> const& x, float kept) {
    std::vector<float> const result{kept};
    dx.assign(4, 9);
    cpu.masked_max_pool_backward(places, 1, x, result, dy, dx);
    std::vector<float> plain(3, 9);
    cpu.max_pool_backward(g, 1, edl::view<float>(x).first(3), result, dy, plain);
    CHECK(std::equal(plain.begin(), plain.end(), dx.begin()));
    CHECK(dx[3] == 0);
    return plain;
  };
  cpu.masked_max_pool_forward(places, 1, exact, y);
  CHECK(y[0] == exact[2]);
  CHECK(of(exact, 1) == std::vector<float>{0, 0, 5});
  CHECK(of(rounded, y[0]) == std::vector<float>{0, 5, 0});
  CHECK(of({0, no_number, 1, 9}, no_number) == std::vector<float>{0, 0, 0});
}

TEST_CASE("many channels, in parts") {
  edl::basic_cpu<double> cpu;
  int const c = 2100;
  edl::pool_geometry const g{{2, 2, c}, {1, 1, c}, 2, 2, 0};
  auto const x = numbers<double>(std::size_t(2 * 4 * c), 1), dy = numbers<double>(std::size_t(2 * c), 2);
  std::vector<double> y(dy.size()), dx(x.size(), 9);
  cpu.max_pool_forward(g, 2, x, y);
  cpu.max_pool_backward(g, 2, x, y, dy, dx);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t k = 0; k < std::size_t(c); ++k) {
      double given = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        std::size_t const at = (s * 4 + i) * std::size_t(c) + k;
        CHECK(x[at] <= y[s * std::size_t(c) + k]);
        given += dx[at];
      }
      CHECK(given == dy[s * std::size_t(c) + k]);
    }
}

TEST_CASE("what is pooled may be bfloat16, and so may its gradient") {
  using edl::pool_geometry;
  int const batch = 5;
  for (pool_geometry const& wide : {
           pool_geometry{{6, 8, 16}, {3, 4, 16}, 2, 2, 0},                // side by side
           pool_geometry{{7, 5, 6}, {3, 2, 6}, 2, 2, 0},                  // and what fills none
           pool_geometry{{7, 6, 8}, {4, 3, 8}, 3, 2, 1},                  // that overlap, beyond the border
           pool_geometry{{5, 9, 24}, {5, 9, 24}, 3, 1, 1},                //
           pool_geometry{{11, 5, 2}, {3, 2, 2}, {1, 2}, {4, 3}, {0, 0}},  // with gaps
           pool_geometry{{4, 4, 40}, {1, 1, 40}, 4, 4, 0},                // all of a sample
       }) {
    std::size_t const inputs = batch * wide.in.size(), outputs = batch * wide.out.size();
    auto const x = rounded(numbers<float>(inputs, 1)), dy = rounded(numbers<float>(outputs, 2));
    for (int const threads : {1, 3})
      for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}}) {
        CAPTURE(wide.in.height);
        CAPTURE(sides.in);
        CAPTURE(sides.out);
        edl::basic_cpu<float> cpu({.threads = threads});
        auto narrow = wide;
        narrow.narrow = sides;
        auto const from = as_narrow(x, sides.in), slope = as_narrow(dy, sides.out);
        std::vector<float> y(outputs), dx(inputs), to(edl::scalars_of(outputs, sides.out), no_number),
            back(edl::scalars_of(inputs, sides.in), no_number);
        auto const check = [&] {
          CHECK(as_wide(to, outputs, sides.out) == (sides.out ? rounded(y) : y));
          CHECK(as_wide(back, inputs, sides.in) == (sides.in ? rounded(dx) : dx));
        };
        cpu.max_pool_forward(wide, batch, x, y);
        cpu.max_pool_backward(wide, batch, x, y, dy, dx);
        cpu.max_pool_forward(narrow, batch, from, to);
        cpu.max_pool_backward(narrow, batch, from, to, slope, back);
        check();
        cpu.average_pool_forward(wide, batch, x, y);
        cpu.average_pool_backward(wide, batch, dy, dx);
        cpu.average_pool_forward(narrow, batch, from, to);
        cpu.average_pool_backward(narrow, batch, slope, back);
        check();
      }
  }
}

}  // namespace pool_test
