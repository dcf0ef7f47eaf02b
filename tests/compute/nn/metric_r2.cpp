// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/r2.hpp"

namespace metric_r2_test {

using edl::r2;
using floats = std::vector<float>;

TEST_CASE("r2: perfect, as good as the mean, and worse") {
  floats const labels{1, 2, 3, 4};
  CHECK(check::metric<r2>({}, 4, labels, labels) == 1);
  CHECK(check::metric<r2>({}, 4, floats(4, 2.5f), labels) == doctest::Approx(0));
  CHECK(check::metric<r2>({}, 4, floats{4, 3, 2, 1}, labels) == doctest::Approx(-3));
}

TEST_CASE("r2: the definition with the mean of labels, and merging") {
  auto const x = check::normal<float>(60, 1), noise = check::normal<float>(60, 2, 0.5);
  floats y(60);
  for (std::size_t i = 0; i < 60; ++i) y[i] = 100 + x[i] + noise[i];
  floats guess(60);
  for (std::size_t i = 0; i < 60; ++i) guess[i] = 100 + x[i];
  double const mean = std::accumulate(y.begin(), y.end(), 0.0) / 60;
  double errors = 0, spread = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    errors += (double(y[i]) - double(guess[i])) * (double(y[i]) - double(guess[i]));
    spread += (double(y[i]) - mean) * (double(y[i]) - mean);
  }
  CHECK(check::metric<r2>({}, 60, guess, y) == doctest::Approx(1 - errors / spread).epsilon(1e-9));
  check::merges<r2>({.channels = 3}, 20, guess, y, 3);
}

TEST_CASE("r2 of nothing, and of equal labels, is 0") {
  CHECK(check::nothing<r2>() == 0);
  CHECK(check::metric<r2>({}, 3, floats{1, 2, 3}, floats(3, 0.1f)) == 0);
  CHECK(check::metric<r2>({}, 3, floats{1, 2, 3}, floats(3, 0)) == 0);
}

}  // namespace metric_r2_test
