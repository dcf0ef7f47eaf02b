// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "edl/device/cpu/basic_cpu.hpp"

TEST_CASE("shares of one, whatever the scale") {
  edl::basic_cpu<float> cpu;
  std::vector<float> const x{1000, 1000, -1000, 0, std::log(3.0f), -1e30f};
  std::vector<float> y(6);
  cpu.softmax_forward(2, 3, x, y);
  CHECK(y[0] == doctest::Approx(0.5));
  CHECK(y[1] == doctest::Approx(0.5));
  CHECK(y[2] == doctest::Approx(0));
  CHECK(y[3] == doctest::Approx(0.25));
  CHECK(y[4] == doctest::Approx(0.75));
  CHECK(y[5] == doctest::Approx(0));
}
