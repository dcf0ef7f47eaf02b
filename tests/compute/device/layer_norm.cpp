// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compute/device/draw.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace layer_norm_test {

TEST_CASE("rows are normalised, and threads change rounding at most") {
  std::size_t const rows = 700, channels = 37;
  auto const x = numbers<double>(rows * channels, 1), gamma = numbers<double>(channels, 2),
             beta = numbers<double>(channels, 3), dy = numbers<double>(rows * channels, 4);
  std::vector<double> wanted(x.size()), wanted_dx(x.size()), wanted_dgamma(channels), wanted_dbeta(channels);
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (std::size_t k = 0; k < channels; ++k) mean += x[r * channels + k] / double(channels);
    for (std::size_t k = 0; k < channels; ++k)
      variance += std::pow(x[r * channels + k] - mean, 2) / double(channels);
    auto const normal = [&](std::size_t k) {
      return (x[r * channels + k] - mean) / std::sqrt(variance + 1e-3);
    };
    for (std::size_t k = 0; k < channels; ++k) {
      double const d = dy[r * channels + k];
      wanted[r * channels + k] = gamma[k] * normal(k) + beta[k];
      wanted_dgamma[k] += d * normal(k);
      wanted_dbeta[k] += d;
      sum += d * gamma[k] / double(channels);
      along += d * gamma[k] * normal(k) / double(channels);
    }
    for (std::size_t k = 0; k < channels; ++k)
      wanted_dx[r * channels + k] =
          (dy[r * channels + k] * gamma[k] - sum - normal(k) * along) / std::sqrt(variance + 1e-3);
  }
  for (int const threads : {1, 3}) {
    edl::basic_cpu<double> cpu({.threads = threads});
    std::vector<double> y(x.size()), kept(2 * rows), dx(x.size()), dgamma(channels, 9), dbeta(channels, 9);
    cpu.layer_norm_forward(rows, channels, 1e-3, x, gamma, beta, y, kept);
    cpu.layer_norm_backward(rows, channels, x, gamma, dy, kept, dx, dgamma, dbeta);
    CHECK(greatest_difference(y, wanted) < 1e-12);
    CHECK(greatest_difference(dx, wanted_dx) < 1e-12);
    CHECK(greatest_difference(dgamma, wanted_dgamma) < 1e-11);
    CHECK(greatest_difference(dbeta, wanted_dbeta) < 1e-11);
    auto const first = dgamma;
    cpu.layer_norm_backward(rows, channels, x, gamma, dy, kept, {}, dgamma, dbeta);
    CHECK(dgamma == first);
    cpu.layer_norm_backward(rows, channels, x, gamma, dy, kept, dx, {}, {});
    CHECK(greatest_difference(dx, wanted_dx) < 1e-12);
  }
}

}  // namespace layer_norm_test
