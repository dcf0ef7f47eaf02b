// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/metric/auc.hpp"

namespace metric_auc_test {

using edl::auc;
using floats = std::vector<float>;

namespace {

/// Every pair of a positive and a negative, counted: 1 in the right order, 1/2 when equal.
double by_pairs(std::vector<double> const& scores, floats const& y) {
  double ordered = 0, pairs = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j)
      if (y[i] > 0.5f && y[j] <= 0.5f) {
        ++pairs;
        ordered += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
  return ordered / pairs;
}

/// Keras' own way: true and false positives above each of 200 thresholds, and trapezoids between the points
/// of the curve.
double by_thresholds(floats const& logits, floats const& y) {
  double area = 0, last_x = 0, last_y = 0;
  for (int t = 0; t < 200; ++t) {
    double const threshold = t == 0 ? -1e-7 : t == 199 ? 1 + 1e-7 : t / 199.0;
    double tp = 0, fp = 0, positives = 0, negatives = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      bool const above = 1 / (1 + std::exp(-double(logits[i]))) > threshold;
      (y[i] > 0.5f ? positives : negatives) += 1;
      if (above) (y[i] > 0.5f ? tp : fp) += 1;
    }
    double const px = fp / negatives, py = tp / positives;
    if (t > 0) area += (last_x - px) * (last_y + py) / 2;
    last_x = px, last_y = py;
  }
  return area;
}

floats labelled(std::size_t n, floats const& logits, std::uint64_t seed) {
  floats y(n);
  auto const noise = check::normal<float>(n, seed, 1.5);
  for (std::size_t i = 0; i < n; ++i) y[i] = logits[i] + noise[i] > 0.3f ? 1 : 0;
  return y;
}

}  // namespace

TEST_CASE("auc: Keras' thresholds give the same number") {
  for (double scale : {0.1, 1.0, 4.0}) {
    auto const x = check::normal<float>(700, 1, scale);
    auto const y = labelled(700, x, 2);
    CHECK(check::metric<auc>({}, 700, x, y) == doctest::Approx(by_thresholds(x, y)).epsilon(1e-12));
  }
}

TEST_CASE("auc: within a bucket's resolution of the exact count of pairs") {
  auto const x = check::normal<float>(900, 3, 1.5);
  auto const y = labelled(900, x, 4);
  double const found = check::metric<auc>({}, 900, x, y);
  std::vector<double> exact(x.begin(), x.end()), bucketed(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) bucketed[i] = double(auc::bucket(1 / (1 + std::exp(-exact[i]))));
  REQUIRE((found > 0.6 && found < 0.95));
  CHECK(std::abs(found - by_pairs(exact, y)) < 1e-3);
  CHECK(found == doctest::Approx(by_pairs(bucketed, y)).epsilon(1e-12));
}

TEST_CASE("auc: perfect, reversed and all ties") {
  CHECK(check::metric<auc>({}, 4, floats{-2, -1, 1, 2}, floats{0, 0, 1, 1}) == 1);
  CHECK(check::metric<auc>({}, 4, floats{-2, -1, 1, 2}, floats{1, 1, 0, 0}) == 0);
  CHECK(check::metric<auc>({}, 5, floats(5, 0.7f), floats{0, 1, 0, 1, 1}) == 0.5);
  // The example of Keras' manual: probabilities 0, 0.5, 0.3, 0.9 of 0, 0, 1, 1 give 0.75.
  auto const logit = [](double p) { return float(std::log(p / (1 - p))); };
  CHECK(check::metric<auc>({}, 4, floats{-1e30f, logit(0.5), logit(0.3), logit(0.9)}, floats{0, 0, 1, 1}) ==
        0.75);
}

TEST_CASE("auc: buckets are open below and closed above, and nothing falls out of them") {
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(auc::bucket(0) == 0);
  CHECK(auc::bucket(1.0 / 199) == 0);
  CHECK(auc::bucket(1.0 / 199 + 1e-12) == 1);
  CHECK(auc::bucket(1) == 198);
  auto const sums = check::totals<auc>({}, 4, floats{inf, -inf, nan, 1e30f}, floats{1, 1, 1, 0});
  CHECK(sums[198] == 1);
  CHECK(sums[0] == 2);
  CHECK(sums[199 + 198] == 1);
}

TEST_CASE("auc: merging, several outputs, and nothing to tell apart") {
  auto const x = check::normal<float>(200, 5, 1);
  auto const y = labelled(200, x, 6);
  check::merges<auc>({}, 200, x, y, 1);
  check::merges<auc>({.channels = 2}, 100, x, y, 2);
  CHECK(check::metric<auc>({}, 200, x, y) == check::metric<auc>({.channels = 4}, 50, x, y));
  CHECK(check::nothing<auc>() == 0);
  CHECK(check::metric<auc>({}, 3, floats{1, 2, 3}, floats{1, 1, 1}) == 0);
  CHECK(check::metric<auc>({}, 3, floats{1, 2, 3}, floats{0, 0, 0}) == 0);
}

}  // namespace metric_auc_test
