// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/draw.hpp"
#include "edl/device/cpu/basic_cpu.hpp"

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
