// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metric/of_head.hpp"
#include "edl/compute/nn/metrics.hpp"

namespace metric_of_head_test {

namespace nn = edl::nn;

namespace {

constexpr auto two = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                               nn::head<"stars", 3>(nn::softmax_cross_entropy{}, 0.5f));
std::vector<float> const truth{1, 2, 0, 0, 0.25f, 1};  // three samples

}  // namespace

TEST_CASE("a metric of a head sees its outputs and labels alone") {
  using stars = edl::of_head<two, "stars", edl::accuracy>;
  using click = edl::of_head<two, "click", edl::mean_loss>;
  using all = edl::metrics<stars, click>;
  static_assert(all::accept<float>);
  std::vector<float> const x{2, 0, 1, 3, /**/ -1, 5, 0, 0, /**/ 0, 9, 0, 0};  // the third is wrong
  std::vector<double> sums(all::totals);
  all::update<float, float>(sums, {1, 1, 4}, 3, x, truth, 7);
  auto const values = all::values(sums);
  CHECK(values[0].first == "stars/accuracy");
  CHECK(values[0].second == doctest::Approx(2.0 / 3));
  CHECK(values[1].first == "click/loss");
  double const expected = (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-1.0)) + std::log(2.0)) / 3;
  CHECK(values[1].second == doctest::Approx(expected));
}

}  // namespace metric_of_head_test
