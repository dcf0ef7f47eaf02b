// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/gelu.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace gelu_test {

namespace {

double below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double slope(double x) { return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }

/// Of what is wrong with the values and with the derivatives of numbers from -12 to 12.
template <class T>
std::pair<double, double> errors(int threads) {
  std::vector<T> x(20003), y(x.size()), dx(x.size());
  std::vector<T> const ones(x.size(), T(1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(-12 + 24 * double(i) / double(x.size() - 1));
  edl::basic_cpu<T> cpu({.threads = threads});
  cpu.elementwise_forward(edl::elementwise::gelu, 0, x, y);
  cpu.elementwise_backward(edl::elementwise::gelu, 0, x, ones, dx);
  double values = 0, slopes = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto const at = double(x[i]);
    values = std::max(values, std::abs(double(y[i]) - at * below(at)) / std::max(1.0, std::abs(at)));
    slopes = std::max(slopes, std::abs(double(dx[i]) - slope(at)));
  }
  return {values, slopes};
}

}  // namespace

TEST_CASE("gelu and its derivative, in vectors and by themselves") {
  for (int threads : {1, 2}) {
    auto const single = errors<float>(threads);
    CHECK(single.first < 3e-7);
    CHECK(single.second < 5e-7);
    auto const twice = errors<double>(threads);
    CHECK(twice.first < 1e-15);
    CHECK(twice.second < 1e-14);
  }
}

TEST_CASE("gelu far out, and of what is no number") {
  std::vector<float> x(9, 1e30f), y(9);
  x[1] = -1e30f, x[2] = std::numeric_limits<float>::quiet_NaN(), x[8] = -1e30f, x[3] = 0;
  edl::basic_cpu<float> cpu;
  cpu.elementwise_forward(edl::elementwise::gelu, 0, x, y);
  CHECK(y[0] == 1e30f);
  CHECK(y[1] == 0);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
  CHECK(y[8] == 0);
}

}  // namespace gelu_test
