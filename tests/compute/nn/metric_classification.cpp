// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/losses.hpp"
#include "edl/compute/nn/metric/classification.hpp"
#include "edl/compute/nn/metric/metric.hpp"
#include "edl/compute/nn/metrics.hpp"

namespace metric_accuracy_test {

using edl::accuracy;
using classes = std::vector<std::int32_t>;
using quantities = std::vector<float>;

TEST_CASE("accuracy: the largest output against the label") {
  auto const x = check::normal<float>(200 * 5, 1);
  classes y(200);
  int right = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    y[i] = std::int32_t(i % 5);
    right += std::max_element(x.begin() + long(i * 5), x.begin() + long(i * 5 + 5)) - x.begin() ==
             long(i * 5 + i % 5);
  }
  REQUIRE((right > 10 && right < 100));
  CHECK(check::metric<accuracy>({.channels = 5}, 200, x, y) == right / 200.0);
  check::merges<accuracy>({.channels = 5}, 200, x, y, 1);
}

TEST_CASE("accuracy: of a sequence, the places that have a label") {
  quantities const x{2, 1, 0, 3, 5, 4, 0, 1};
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{0, 0, -1, 1}) == doctest::Approx(2.0 / 3));
  check::merges<accuracy>({1, 2, 5}, 100, check::normal<float>(1000, 2), classes(200, 3), 2);
}

TEST_CASE("accuracy: of equal outputs the first is the answer, NaN is none") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  edl::shape const three{.channels = 3};
  CHECK(check::metric<accuracy>(three, 1, quantities{1, 1, 0}, classes{0}) == 1);
  CHECK(check::metric<accuracy>(three, 1, quantities{1, 1, 0}, classes{1}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, 1, 0}, classes{0}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, 1, 0}, classes{1}) == 0);
  CHECK(check::metric<accuracy>(three, 1, quantities{nan, nan, nan}, classes{0}) == 0);
}

TEST_CASE("accuracy: a logit against a probability") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(check::metric<accuracy>({}, 4, quantities{2, -1, 0.1f, -3}, quantities{1, 0, 0, 1}) == 0.5);
  CHECK(check::metric<accuracy>({}, 2, quantities{0, 0}, quantities{0, 1}) == 0.5);  // p = 1/2 is "no"
  CHECK(check::metric<accuracy>({}, 2, quantities{nan, nan}, quantities{0, 1}) == 0);
  CHECK(check::metric<accuracy>({.channels = 2}, 2, quantities{1, 1, 1, -1}, quantities{1, 0, 1, 1}) == 0.5);
  check::merges<accuracy>({}, 50, check::normal<float>(50, 4), quantities(50, 1), 1);
}

TEST_CASE("accuracy: a class for each place of a sample, and places without one") {
  quantities const x{1, 2, 5, 4, 0, 1, 3, 2};  // of two samples of two places: classes 1, 0, 1, 0
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{1, 0, 0, 0}) == 0.75);
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{1, -1, -1, 1}) == 0.5);
  CHECK(check::metric<accuracy>({1, 2, 2}, 2, x, classes{-1, -1, -1, -1}) == 0);
}

TEST_CASE("accuracy of nothing is 0") { CHECK(check::nothing<accuracy>() == 0); }

}  // namespace metric_accuracy_test

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

namespace metric_scores_test {

using floats = std::vector<float>;

TEST_CASE("scores: known counts") {
  // 3 right of 4 that are said, 3 of 5 that are.
  floats const x{1, 2, 0.1f, 3, -1, 0, -2, -5}, y{1, 1, 1, 0, 1, 1, 0, 0};
  CHECK(check::totals<edl::f1_score>({}, 8, x, y) == std::vector<double>{3, 1, 2});
  CHECK(check::metric<edl::precision_score>({}, 8, x, y) == 0.75);
  CHECK(check::metric<edl::recall_score>({}, 8, x, y) == 0.6);
  CHECK(check::metric<edl::f1_score>({}, 8, x, y) == doctest::Approx(2 * 0.75 * 0.6 / (0.75 + 0.6)));
  CHECK(check::metric<edl::f1_score>({.channels = 4}, 2, x, y) == check::metric<edl::f1_score>({}, 8, x, y));
}

TEST_CASE("scores: merging, a NaN says no, and nothing is 0") {
  auto const x = check::normal<float>(50, 1);
  floats y(50);
  for (std::size_t i = 0; i < 50; ++i) y[i] = i % 3 == 0;
  check::merges<edl::precision_score>({}, 50, x, y, 1);
  check::merges<edl::recall_score>({}, 50, x, y, 1);
  check::merges<edl::f1_score>({}, 50, x, y, 1);
  CHECK(check::metric<edl::recall_score>({}, 1, floats{std::numeric_limits<float>::quiet_NaN()}, floats{1}) ==
        0);
  CHECK(check::nothing<edl::precision_score>() == 0);
  CHECK(check::nothing<edl::recall_score>() == 0);
  CHECK(check::nothing<edl::f1_score>() == 0);
}

}  // namespace metric_scores_test

namespace metric_class_scores_test {

using classes = std::vector<std::int32_t>;

namespace {

static_assert(edl::class_precision<0>::name == "precision_0" && edl::class_f1<12>::name == "f1_12");
static_assert(edl::macro_recall<3>::name == "macro_recall");
static_assert(edl::metric_fits<edl::class_f1<2>>(3) && !edl::metric_fits<edl::class_f1<3>>(3));
static_assert(edl::metric_fits<edl::macro_f1<3>>(3) && !edl::metric_fits<edl::macro_f1<4>>(3));

edl::shape const three{.channels = 3};

/// Outputs whose largest is that of a class.
std::vector<float> saying(classes const& said) {
  std::vector<float> x(3 * said.size());
  for (std::size_t i = 0; i < said.size(); ++i) x[3 * i + std::size_t(said[i])] = 1;
  return x;
}

}  // namespace

TEST_CASE("class scores: known counts") {
  classes const labels{0, 0, 0, 1, 1, 2}, said{0, 0, 1, 1, 1, 0};
  auto const x = saying(said);
  CHECK(check::metric<edl::class_precision<0>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_recall<0>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_precision<1>>(three, 6, x, labels) == doctest::Approx(2.0 / 3));
  CHECK(check::metric<edl::class_recall<1>>(three, 6, x, labels) == 1);
  CHECK(check::metric<edl::class_f1<1>>(three, 6, x, labels) == doctest::Approx(0.8));
  CHECK(check::metric<edl::class_f1<2>>(three, 6, x, labels) == 0);
  CHECK(check::metric<edl::macro_precision<3>>(three, 6, x, labels) ==
        doctest::Approx((2.0 / 3 + 2.0 / 3) / 3));
  CHECK(check::metric<edl::macro_recall<3>>(three, 6, x, labels) == doctest::Approx((2.0 / 3 + 1) / 3));
  CHECK(check::metric<edl::macro_f1<3>>(three, 6, x, labels) == doctest::Approx((2.0 / 3 + 0.8) / 3));
}

TEST_CASE("class scores: classes that nobody knows of do not count in a mean") {
  CHECK(check::metric<edl::macro_f1<3>>(three, 2, saying({0, 1}), classes{0, 1}) == 1);
}

TEST_CASE("class scores: a NaN is no answer, and a place without a label is none") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{nan, 1, 0, 1, 0, 0};
  CHECK(check::totals<edl::macro_f1<3>>(three, 2, x, classes{1, 0}) ==
        std::vector<double>{1, 1, 1, 0, 0, 1, 0, 0, 0});
  CHECK(check::totals<edl::class_f1<1>>({1, 2, 3}, 1, x, classes{1, -1}) == std::vector<double>{0, 0, 1});
}

TEST_CASE("class scores: merging, and nothing is 0") {
  auto const x = check::normal<float>(150, 1);
  classes y(50);
  for (std::size_t i = 0; i < 50; ++i) y[i] = std::int32_t(i * i % 3);
  check::merges<edl::class_precision<1>>(three, 50, x, y, 1);
  check::merges<edl::class_recall<0>>(three, 50, x, y, 1);
  check::merges<edl::macro_f1<3>>(three, 50, x, y, 1);
  CHECK(check::nothing<edl::class_f1<0>>() == 0);
  CHECK(check::nothing<edl::macro_f1<3>>() == 0);
}

}  // namespace metric_class_scores_test

namespace metric_confusion_test {

using classes = std::vector<std::int32_t>;

namespace {

constexpr auto two = edl::nn::heads(edl::nn::head<"a", 2>(edl::nn::softmax_cross_entropy{}),
                                    edl::nn::head<"b", 1>(edl::nn::sigmoid_cross_entropy{}));

}  // namespace

TEST_CASE("confusion: each class against each, by name, beside other metrics") {
  std::vector<float> const x{2, 1, 1, 2, 3, 0, 0, 1};
  using list = edl::metrics<edl::accuracy, edl::confusion<2>, edl::mean_loss>;
  auto const sums = check::totals<list>({.channels = 2}, 4, x, classes{0, 0, 1, 1}, 0.5);
  CHECK(list::values(sums) == edl::metric_values{{"accuracy", 0.5},
                                                 {"confusion/0/0", 1},
                                                 {"confusion/0/1", 1},
                                                 {"confusion/1/0", 1},
                                                 {"confusion/1/1", 1},
                                                 {"loss", 0.5}});
  CHECK(edl::metrics<edl::confusion<2>>::fit(2));
  CHECK_FALSE(edl::metrics<edl::accuracy, edl::confusion<2>>::fit(3));
}

TEST_CASE("confusion: of a head it has the head's name") {
  using of = edl::of_head<two, "a", edl::confusion<2>>;
  std::vector<float> const x{2, 1, 0, 1, 2, 0}, y{0, 1, 0, 0};
  std::vector<double> sums(of::totals);
  of::update(sums, {.channels = 3}, 2, edl::view<float>(x), edl::view<float>(y), 0);
  CHECK(edl::metrics<of>::values(sums) ==
        edl::metric_values{
            {"a/confusion/0/0", 1}, {"a/confusion/0/1", 1}, {"a/confusion/1/0", 0}, {"a/confusion/1/1", 0}});
}

TEST_CASE("confusion: a NaN is in none of the counts, nor is a place without a label") {
  std::vector<float> const x{std::numeric_limits<float>::quiet_NaN(), 1, 0, 1};
  CHECK(check::totals<edl::confusion<2>>({1, 2, 2}, 1, x, classes{0, -1}) == std::vector<double>(4, 0));
}

}  // namespace metric_confusion_test

namespace metric_perplexity_test {

using edl::perplexity;
using classes = std::vector<std::int32_t>;

TEST_CASE("perplexity: as many as there are classes, where all are as likely") {
  CHECK(check::metric<perplexity>({.channels = 7}, 2, std::vector<float>(14, 3), classes{1, 6}) ==
        doctest::Approx(7));
}

TEST_CASE("perplexity: exp of the loss, and each place counts the same") {
  auto const x = check::normal<float>(40 * 5, 1, 2);
  classes y(40);
  for (std::size_t i = 0; i < 40; ++i) y[i] = std::int32_t(i % 5);
  CHECK(check::metric<perplexity>({.channels = 5}, 40, x, y) ==
        doctest::Approx(std::exp(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 5}, 40, x, y)))
            .epsilon(1e-6));
  for (std::size_t i = 0; i < 40; i += 3) y[i] = -1;
  edl::shape const sequence{1, 4, 5};
  CHECK(check::metric<perplexity>(sequence, 10, x, y) ==
        doctest::Approx(std::exp(check::value(edl::nn::sequence_cross_entropy{}, sequence, 10, x, y)))
            .epsilon(1e-6));
  check::merges<perplexity>(sequence, 10, x, y, 4);
}

TEST_CASE("perplexity: far out it is large and no NaN, and of nothing it is 0") {
  std::vector<float> const x{100, -100};
  CHECK(check::metric<perplexity>({.channels = 2}, 1, x, classes{1}) ==
        doctest::Approx(std::exp(200.0)).epsilon(1e-6));
  CHECK(check::nothing<perplexity>() == 0);
}

}  // namespace metric_perplexity_test

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
