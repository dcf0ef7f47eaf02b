// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace softmax_test {

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

TEST_CASE("logarithms of shares, on any number of threads") {
  std::vector<float> x(3000 * 7), dy(x.size()), y(x.size()), dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 23) - 11, dy[i] = float(i % 5) - 2;
  x[0] = 1e4f, x[7] = -1e4f;
  edl::basic_cpu<float> one, three({.threads = 3});
  one.log_softmax_forward(3000, 7, x, y);
  one.log_softmax_backward(3000, 7, y, dy, dx);
  auto const y_of_one = y, dx_of_one = dx;
  three.log_softmax_forward(3000, 7, x, y);
  three.log_softmax_backward(3000, 7, y, dy, dx);
  CHECK(y == y_of_one);
  CHECK(dx == dx_of_one);
  CHECK(y[0] == 0);
  for (std::size_t row = 0; row < 3000; ++row) {
    double sum = 0, slopes = 0;
    for (std::size_t k = 7 * row; k < 7 * row + 7; ++k)
      sum += std::exp(double(y[k])), slopes += double(dx[k]);
    REQUIRE(sum == doctest::Approx(1));
    REQUIRE(std::abs(slopes) < 1e-5);
  }
}

}  // namespace softmax_test
