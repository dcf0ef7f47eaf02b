// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/accuracy.hpp"
#include "edl/compute/nn/metric/top_k.hpp"

namespace metric_top_k_test {

using classes = std::vector<std::int32_t>;

static_assert(edl::top_k<1>::name == "top_1_accuracy");
static_assert(edl::top_k<5>::name == "top_5_accuracy");
static_assert(edl::top_k<2147483647>::name == "top_2147483647_accuracy");

TEST_CASE("top k: the label is among the k largest, by sorting") {
  int const n = 300;
  auto const x = check::normal<float>(n * 8, 1);
  classes y(n);
  int right = 0;
  for (int i = 0; i < n; ++i) {
    y[std::size_t(i)] = i % 8;
    std::vector<int> order(8);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return x[std::size_t(i * 8 + a)] > x[std::size_t(i * 8 + b)]; });
    right += std::find(order.begin(), order.begin() + 3, i % 8) != order.begin() + 3;
  }
  edl::shape const eight{.channels = 8};
  CHECK(check::metric<edl::top_k<3>>(eight, n, x, y) == double(right) / n);
  CHECK(check::metric<edl::top_k<1>>(eight, n, x, y) == check::metric<edl::accuracy>(eight, n, x, y));
  CHECK(check::metric<edl::top_k<8>>(eight, n, x, y) == 1);
  CHECK(check::metric<edl::top_k<99>>(eight, n, x, y) == 1);
  check::merges<edl::top_k<3>>(eight, n, x, y, 1);
}

TEST_CASE("top k: ties are in, NaN is out") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  edl::shape const four{.channels = 4};
  CHECK(check::metric<edl::top_k<2>>(four, 1, std::vector<float>{3, 1, 1, 1}, classes{3}) == 1);
  CHECK(check::metric<edl::top_k<1>>(four, 1, std::vector<float>{3, 1, 1, 1}, classes{3}) == 0);
  CHECK(check::metric<edl::top_k<4>>(four, 1, std::vector<float>{0, 0, nan, 0}, classes{2}) == 0);
  CHECK(check::metric<edl::top_k<1>>(four, 1, std::vector<float>{nan, 0, 1, 0}, classes{2}) == 0);
  CHECK(check::metric<edl::top_k<2>>(four, 1, std::vector<float>{nan, 0, 1, 0}, classes{2}) == 1);
}

TEST_CASE("top k: a class for each place of a sample, and places without one") {
  std::vector<float> const x{3, 2, 1, 1, 2, 3, 3, 1, 2, 2, 3, 1};
  CHECK(check::metric<edl::top_k<2>>({1, 2, 3}, 2, x, classes{1, 0, 1, 2}) == 0.25);
  CHECK(check::metric<edl::top_k<2>>({1, 2, 3}, 2, x, classes{1, -1, -1, 2}) == 0.5);
}

TEST_CASE("top k of nothing is 0") { CHECK(check::nothing<edl::top_k<5>>() == 0); }

TEST_CASE("top_k: of a sequence, the places that have a label") {
  std::vector<float> const x{3, 2, 1, 3, 2, 1, 3, 2, 1};
  CHECK(check::metric<edl::top_k<2>>({1, 3, 3}, 1, x, std::vector<std::int32_t>{1, -1, 2}) == 0.5);
  CHECK(edl::top_k<12>::name == "top_12_accuracy");
}

}  // namespace metric_top_k_test
