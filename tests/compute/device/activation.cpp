// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "compute/device/narrow.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace activation_test {

TEST_CASE("activations, by the definition") {
  edl::basic_cpu<double> cpu;
  auto x = numbers<double>(101, 1);
  for (auto& v : x) v *= 8;
  std::vector<double> y(x.size()), expected(x.size());
  auto const each = [&](auto f) {
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = f(x[i]);
  };
  cpu.elementwise_forward(edl::elementwise::relu, 0, x, y);
  each([](double v) { return v > 0 ? v : 0; });
  CHECK(y == expected);
  cpu.elementwise_forward(edl::elementwise::leaky_relu, 0.25, x, y);
  each([](double v) { return v > 0 ? v : v / 4; });
  CHECK(y == expected);
  cpu.elementwise_forward(edl::elementwise::sigmoid, 0, x, y);
  each([](double v) { return 1 / (1 + std::exp(-v)); });
  CHECK(greatest_difference(y, expected) < 1e-12);
  cpu.elementwise_forward(edl::elementwise::tanh, 0, x, y);
  each([](double v) { return std::tanh(v); });
  CHECK(greatest_difference(y, expected) < 1e-12);
}

TEST_CASE("extremes neither overflow nor hide a NaN") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const x{-1e30f, 1e30f, std::numeric_limits<float>::quiet_NaN(), 0};
  std::vector<float> y(4);
  cpu.elementwise_forward(edl::elementwise::sigmoid, 0, x, y);
  CHECK(y[0] == doctest::Approx(0));
  CHECK(y[1] == doctest::Approx(1));
  cpu.elementwise_forward(edl::elementwise::tanh, 0, x, y);
  CHECK(y[0] == doctest::Approx(-1));
  cpu.elementwise_forward(edl::elementwise::relu, 0, x, y);
  CHECK(y[0] == 0);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
}

TEST_CASE("what goes through an activation may be bfloat16, and so may its gradient") {
  using enum edl::elementwise;
  std::size_t const n = 50'000;  // several parts on each thread
  auto const x = rounded(numbers<float>(n, 1)), dy = rounded(numbers<float>(n, 2));
  for (int const threads : {1, 3})
    for (auto const f : {relu, leaky_relu, sigmoid, tanh, gelu, scale, silu, elu, softplus})
      for (auto const sides : {edl::bfloat16_io{true, false}, {false, true}, {true, true}}) {
        CAPTURE(int(f));
        edl::basic_cpu<float> cpu({.threads = threads});
        std::vector<float> y(n), dx(n), found(edl::scalars_of(n, sides.out), 9),
            back(edl::scalars_of(n, sides.in), 9);
        cpu.elementwise_forward(f, 0.25f, x, y);
        cpu.elementwise_forward(f, 0.25f, as_narrow(x, sides.in), found, sides);
        auto const expected = sides.out ? rounded(y) : y;
        // Where numbers stand decides which are computed by vectors.
        CHECK(greatest_difference(as_wide(found, n, sides.out), expected) <= (sides.out ? 0x1p-7 : 1e-6));
        // The slope is of what is kept.
        bool const of_x = edl::slope_of_x(f);
        auto const kept = of_x ? x : expected;
        cpu.elementwise_backward(f, 0.25f, kept, dy, dx);
        cpu.elementwise_backward(f, 0.25f, as_narrow(kept, of_x ? sides.in : sides.out),
                                 as_narrow(dy, sides.out), back, sides);
        auto const slopes = sides.in ? rounded(dx) : dx;
        CHECK(greatest_difference(as_wide(back, n, sides.in), slopes) <= (sides.in ? 0x1p-7 : 1e-6));
        if (f == relu || f == leaky_relu || f == scale) {
          CHECK(as_wide(found, n, sides.out) == expected);
          CHECK(as_wide(back, n, sides.in) == slopes);
        }
      }
}

}  // namespace activation_test
