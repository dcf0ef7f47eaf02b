// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/loss/mean_squared_error.hpp"
#include "edl/compute/nn/metric/mean_loss.hpp"

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
