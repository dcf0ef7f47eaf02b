// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/loss/distance.hpp"
#include "edl/compute/nn/metric/regression.hpp"

namespace metric_mse_test {

using edl::mse;

TEST_CASE("mse: known value, the loss of that name, and merging") {
  CHECK(check::metric<mse>({.channels = 2}, 2, std::vector<float>{1, 2, 3, 4},
                           std::vector<float>{2, 0, 3, 1}) == 3.5);
  edl::shape const output{.channels = 3};
  auto const x = check::normal<float>(60, 1);
  auto const y = check::normal<float>(60, 2);
  CHECK(check::metric<mse>(output, 20, x, y) ==
        doctest::Approx(check::value(edl::nn::mean_squared_error{}, output, 20, x, y)).epsilon(1e-7));
  check::merges<mse>(output, 20, x, y, 3);
}

TEST_CASE("mse and rmse of nothing are 0") {
  CHECK(check::nothing<mse>() == 0);
  CHECK(check::nothing<edl::rmse>() == 0);
}

TEST_CASE("rmse is the root of the whole's mean, not the mean of parts' roots") {
  CHECK(check::metric<edl::rmse>({.channels = 2}, 2, std::vector<float>{1, 2, 3, 4},
                                 std::vector<float>{2, 0, 3, 1}) == doctest::Approx(std::sqrt(3.5)));
  check::merges<edl::rmse>({.channels = 3}, 20, check::normal<float>(60, 1), check::normal<float>(60, 2), 3);
}

}  // namespace metric_mse_test

namespace metric_mae_test {

using edl::mae;

TEST_CASE("mae: known value, and merging") {
  CHECK(check::metric<mae>({.channels = 2}, 2, std::vector<float>{1, 2, 3, 4},
                           std::vector<float>{2, 0, 3, 1}) == 1.5);
  check::merges<mae>({.channels = 3}, 20, check::normal<float>(60, 1), check::normal<float>(60, 2), 3);
}

TEST_CASE("mae of nothing is 0") { CHECK(check::nothing<mae>() == 0); }

}  // namespace metric_mae_test

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

namespace metric_mean_loss_test {

using edl::mean_loss;

TEST_CASE("mean loss: batches weigh as many samples as they have") {
  edl::shape const output{.channels = 3};
  auto const x = check::normal<double>(33, 1);
  auto const y = check::normal<float>(33, 2);
  edl::nn::mean_squared_error const loss;
  std::vector<double> sums(mean_loss::totals);
  for (auto [from, batch] : {std::pair{0, 4}, {4, 4}, {8, 3}}) {
    std::vector<double> const some(x.begin() + from * 3, x.begin() + (from + batch) * 3);
    std::vector<float> const labels(y.begin() + from * 3, y.begin() + (from + batch) * 3);
    mean_loss::update(std::span<double>(sums), output, batch, edl::view<double>(some),
                      edl::view<float>(labels), check::value(loss, output, batch, some, labels));
  }
  CHECK(mean_loss::value(sums) == doctest::Approx(check::value(loss, output, 11, x, y)).epsilon(1e-13));
}

TEST_CASE("the mean loss of nothing is 0") { CHECK(check::nothing<mean_loss>() == 0); }

}  // namespace metric_mean_loss_test
