// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/whitening.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/core/error.hpp"

namespace whitening_test {

TEST_CASE("what whitening filters see has no correlation and variance one, and comes with both signs") {
  edl::shape const in{7, 6, 2};
  std::size_t const pictures = 40, size = 8, filters = 16;
  auto x = numbers<float>(pictures * in.size(), 1);
  for (std::size_t i = 2; i < x.size(); ++i) x[i] = 0.5f * x[i - 2] + 0.6f * x[i] + 0.2f * x[i - 1];
  std::vector<float> kernel(size * filters);
  edl::nn::whiten(x, in, 2, 0, kernel);
  edl::conv_geometry const g{in, {6, 5, int(filters)}, 2, 1, 0, 1};
  std::vector<float> y(pictures * g.out.size());
  edl::cpu cpu;
  cpu.conv2d_forward(g, int(pictures), edl::activation::none, x, kernel, {}, y);
  std::size_t const rows = y.size() / filters;
  for (std::size_t a = 0; a < filters; ++a)
    for (std::size_t b = 0; b < filters; ++b) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) sum += double(y[r * filters + a]) * double(y[r * filters + b]);
      double const expected = a == b ? 1 : a == b + size || b == a + size ? -1 : 0;
      CHECK(std::abs(sum / double(rows) - expected) < 1e-4);
    }
}

TEST_CASE("a larger epsilon makes whitening filters smaller, and nothing strange is whitened") {
  edl::shape const in{3, 3, 1};
  auto x = numbers<float>(5 * in.size(), 1);
  std::vector<float> small(4), large(4), odd(3);
  edl::nn::whiten(x, in, 2, 1e-3, small);
  edl::nn::whiten(x, in, 2, 10, large);
  double a = 0, b = 0;
  for (std::size_t i = 0; i < 4; ++i) a += double(small[i] * small[i]), b += double(large[i] * large[i]);
  CHECK(b < a / 4);
  CHECK_THROWS_AS(edl::nn::whiten(x, in, 2, 1, odd), edl::error);
  CHECK_THROWS_AS(edl::nn::whiten(x, in, 4, 1, small), edl::error);
  CHECK_THROWS_AS(edl::nn::whiten({}, in, 2, 1, small), edl::error);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(edl::nn::whiten(x, in, 2, 1, small), edl::error);
}

}  // namespace whitening_test
