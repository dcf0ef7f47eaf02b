// SPDX-License-Identifier: Apache-2.0
#include "edl/device/cpu/activation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/draw.hpp"

TEST_CASE("activations, by the definition") {
  edl::basic_cpu<double> cpu;
  auto x = numbers<double>(101, 1);
  for (auto& v : x) v *= 8;
  std::vector<double> y(x.size()), expected(x.size());
  auto const each = [&](auto f) {
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = f(x[i]);
  };
  relu_forward(cpu, x, y);
  each([](double v) { return v > 0 ? v : 0; });
  CHECK(y == expected);
  leaky_relu_forward(cpu, 0.25, x, y);
  each([](double v) { return v > 0 ? v : v / 4; });
  CHECK(y == expected);
  sigmoid_forward(cpu, x, y);
  each([](double v) { return 1 / (1 + std::exp(-v)); });
  CHECK(greatest_difference(y, expected) < 1e-12);
  tanh_forward(cpu, x, y);
  each([](double v) { return std::tanh(v); });
  CHECK(greatest_difference(y, expected) < 1e-12);
}

TEST_CASE("extremes neither overflow nor hide a NaN") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const x{-1e30f, 1e30f, std::numeric_limits<float>::quiet_NaN(), 0};
  std::vector<float> y(4);
  sigmoid_forward(cpu, x, y);
  CHECK(y[0] == doctest::Approx(0));
  CHECK(y[1] == doctest::Approx(1));
  tanh_forward(cpu, x, y);
  CHECK(y[0] == doctest::Approx(-1));
  relu_forward(cpu, x, y);
  CHECK(y[0] == 0);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
}
