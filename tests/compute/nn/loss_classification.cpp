// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/classification.hpp"

namespace loss_logits_test {

namespace detail = edl::nn::detail;

TEST_CASE("sums of logits of any number are those of plain loops") {
  for (std::size_t const n : {1, 3, 7, 8, 9, 511, 513, 5000}) {
    CAPTURE(n);
    auto const x = check::normal<float>(n, 1, 4);
    std::vector<double> const wide(x.begin(), x.end());
    double const largest = *std::max_element(wide.begin(), wide.end());
    double exps = 0, below = 0;
    for (double const each : wide) exps += std::exp(each - largest), below += each - largest;
    auto const sums = detail::sums_of_logits<float>(x);
    auto const wide_sums = detail::sums_of_logits<double>(wide);
    CHECK(double(sums.largest) == largest);
    CHECK(sums.exps == doctest::Approx(exps).epsilon(3e-7));
    CHECK(sums.below == doctest::Approx(below).epsilon(3e-7));
    CHECK(wide_sums.exps == doctest::Approx(exps).epsilon(1e-14));
    CHECK(wide_sums.below == doctest::Approx(below).epsilon(1e-13));
    std::vector<float> y(n);
    detail::scaled_exps<float>(x, sums.largest, 2, 0.5f, y);
    for (std::size_t i = 0; i < n; ++i)
      REQUIRE(double(y[i]) == doctest::Approx(2 * std::exp(wide[i] - largest) - 0.5).epsilon(1e-6));
  }
}

TEST_CASE("a logit of minus infinity is no share, and a NaN stays") {
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{1, -inf, 1, -1e4f};
  std::vector<float> y(4);
  CHECK(detail::sums_of_logits<float>(x).exps == 2);
  detail::scaled_exps<float>(x, 1, 1, 0, y);
  CHECK(y == std::vector<float>{1, 0, 1, 0});
  for (std::size_t const at : {0, 5, 8}) {
    std::vector<float> bad(9, 1);
    bad[at] = nan;
    CHECK(std::isnan(detail::sums_of_logits<float>(bad).exps));
  }
}

}  // namespace loss_logits_test

namespace loss_softmax_cross_entropy_test {

using edl::nn::softmax_cross_entropy;
using labels = std::vector<std::int32_t>;

TEST_CASE("softmax cross entropy: known values") {
  // ln 10 for equal outputs; for {1, 2, 3} and class 2, ln(e + e² + e³) − 3.
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 10}, 1, std::vector<double>(10, 4.0), labels{7}) ==
        doctest::Approx(std::log(10.0)).epsilon(1e-14));
  std::vector<double> const x{1, 2, 3, 3, 1, 2};
  double const sum = std::log(std::exp(1) + std::exp(2) + std::exp(3));
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 1, std::vector<double>{1, 2, 3}, labels{2}) ==
        doctest::Approx(sum - 3).epsilon(1e-14));
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 2, x, labels{2, 1}) ==
        doctest::Approx(((sum - 3) + (sum - 1)) / 2).epsilon(1e-14));
}

TEST_CASE("softmax cross entropy: gradients are those of central differences") {
  for (float smoothing : {0.0f, 0.1f, 0.9f}) {
    CAPTURE(smoothing);
    softmax_cross_entropy const loss{.label_smoothing = smoothing};
    check::gradient(loss, {.channels = 7}, 5, check::normal<double>(35, 1, 3), {0, 6, 3, 3, 1});
    check::gradient(loss, {.height = 2, .width = 1, .channels = 2}, 3, check::normal<double>(12, 2),
                    {3, 0, 2});
    check::gradient(loss, {}, 2, {0.5, -4}, {0, 0});  // one class: nothing to learn
  }
}

TEST_CASE("softmax cross entropy: label smoothing is the mixture with the uniform distribution") {
  int const classes = 6;
  std::vector<double> const x = check::normal<double>(classes, 3, 2);
  double uniform = 0;
  for (int k = 0; k < classes; ++k)
    uniform += check::value(softmax_cross_entropy{}, {.channels = classes}, 1, x, {k});
  double const hard = check::value(softmax_cross_entropy{}, {.channels = classes}, 1, x, {4});
  double const s = double(0.3f);
  CHECK(check::value(softmax_cross_entropy{0.3f}, {.channels = classes}, 1, x, {4}) ==
        doctest::Approx((1 - s) * hard + s * uniform / classes).epsilon(1e-13));
}

TEST_CASE("softmax cross entropy: large outputs do not overflow") {
  float const inf = std::numeric_limits<float>::infinity();
  std::vector<float> const x{1e30f, -1e30f, 0, -3e38f, 3e38f, 0, 5, -inf, 5};
  std::vector<float> dx(9);
  double const loss = softmax_cross_entropy{}({.channels = 3}, 3, edl::view<float>(x),
                                              edl::view<std::int32_t>(labels{0, 1, 2}), dx);
  CHECK(loss == doctest::Approx(std::log(2.0) / 3));
  CHECK(dx == std::vector<float>{0, 0, 0, 0, 0, 0, 0.5f / 3, 0, 0.5f / 3 - 1.0f / 3});
  // Wrong and sure of it: the loss is the distance, the gradient is bounded.
  std::vector<float> const wrong{200, -200};
  std::vector<float> dwrong(2);
  CHECK(softmax_cross_entropy{}({.channels = 2}, 1, edl::view<float>(wrong),
                                edl::view<std::int32_t>(labels{1}), dwrong) == doctest::Approx(400));
  CHECK(dwrong == std::vector<float>{1, -1});
}

TEST_CASE("softmax cross entropy: a gradient in float sums to zero and is that in double") {
  auto const x = check::normal<float>(64 * 10, 5, 4);
  std::vector<double> const wide(x.begin(), x.end());
  labels y(64);
  for (int i = 0; i < 64; ++i) y[std::size_t(i)] = i % 10;
  std::vector<float> dx(x.size());
  std::vector<double> dwide(x.size());
  edl::shape const output{.channels = 10};
  double const a = softmax_cross_entropy{}(output, 64, edl::view<float>(x), edl::view<std::int32_t>(y), dx);
  double const b =
      softmax_cross_entropy{}(output, 64, edl::view<double>(wide), edl::view<std::int32_t>(y), dwide);
  CHECK(a == doctest::Approx(b).epsilon(1e-7));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::abs(double(dx[i]) - dwide[i]) < 1e-8);
  CHECK(std::abs(std::accumulate(dwide.begin(), dwide.end(), 0.0)) < 1e-15);
}

TEST_CASE("softmax cross entropy: an empty batch has no loss, labels are bounded") {
  CHECK(check::value(softmax_cross_entropy{}, {.channels = 3}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(softmax_cross_entropy::valid(0, {.channels = 10}));
  CHECK(softmax_cross_entropy::valid(9, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(10, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(-1, {.channels = 10}));
  CHECK(!softmax_cross_entropy::valid(std::numeric_limits<std::int32_t>::min(), {.channels = 10}));
}

}  // namespace loss_softmax_cross_entropy_test

namespace loss_sequence_cross_entropy_test {

using edl::nn::sequence_cross_entropy;
using edl::nn::softmax_cross_entropy;
using labels = std::vector<std::int32_t>;

TEST_CASE("sequence cross entropy: the mean of cross entropies over the places that count") {
  edl::shape const output{1, 4, 5};
  auto const x = check::normal<double>(2 * 4 * 5, 1, 3);
  labels const y{0, 4, -1, 2, -1, -1, 3, -1};
  for (float const smoothing : {0.0f, 0.2f}) {
    double expected = 0;
    int counted = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      if (y[i] < 0) continue;
      std::vector<double> const row(x.begin() + long(5 * i), x.begin() + long(5 * i + 5));
      expected += check::value(softmax_cross_entropy{smoothing}, {.channels = 5}, 1, row, {y[i]});
      ++counted;
    }
    CHECK(counted == 4);
    CHECK(check::value(sequence_cross_entropy{smoothing}, output, 2, x, y) ==
          doctest::Approx(expected / counted).epsilon(1e-13));
  }
}

TEST_CASE("sequence cross entropy: gradients are those of central differences") {
  labels const y{0, 4, -1, 2, -1, -1, 3, -1};
  auto const x = check::normal<double>(2 * 4 * 5, 2, 2);
  for (float const smoothing : {0.0f, 0.3f}) {
    check::gradient(sequence_cross_entropy{smoothing}, {1, 4, 5}, 2, x, y);
    check::gradient(sequence_cross_entropy{smoothing, {1, 0.5f, 2, 3, 0}}, {2, 2, 5}, 2, x, y);
  }
}

TEST_CASE("sequence cross entropy: a place that does not count has no gradient, whatever stands there") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const x{1, 2, nan, 1e30f};
  std::vector<float> dx(4, 7);
  double const loss =
      sequence_cross_entropy{}({1, 2, 2}, 1, edl::view<float>(x), edl::view<std::int32_t>(labels{0, -1}), dx);
  CHECK(loss == doctest::Approx(std::log(1 + std::exp(1.0))));
  CHECK(dx[2] == 0);
  CHECK(dx[3] == 0);
  CHECK(dx[0] + dx[1] == doctest::Approx(0));
  CHECK(sequence_cross_entropy{}({1, 2, 2}, 1, edl::view<float>(x), edl::view<std::int32_t>(labels{-1, -1}),
                                 dx) == 0);
  CHECK(dx == std::vector<float>(4, 0));
}

TEST_CASE("sequence cross entropy: extreme logits, many classes, and single precision") {
  std::vector<float> const far{1e4f, -1e4f, 0, -1e4f, 1e4f, 0};
  std::vector<float> dx(6);
  CHECK(sequence_cross_entropy{}({1, 2, 3}, 1, edl::view<float>(far), edl::view<std::int32_t>(labels{0, 0}),
                                 dx) == doctest::Approx(1e4));
  CHECK(dx == std::vector<float>{0, 0, 0, -0.5f, 0.5f, 0});
  std::size_t const classes = 3001;
  auto const x = check::normal<float>(3 * classes, 3, 4);
  std::vector<double> const wide(x.begin(), x.end());
  labels const y{17, 3000, 0};
  std::vector<float> narrow(x.size());
  std::vector<double> exact(x.size());
  edl::shape const output{1, 3, int(classes)};
  double const a =
      sequence_cross_entropy{}(output, 1, edl::view<float>(x), edl::view<std::int32_t>(y), narrow);
  double const b =
      sequence_cross_entropy{}(output, 1, edl::view<double>(wide), edl::view<std::int32_t>(y), exact);
  CHECK(a == doctest::Approx(b).epsilon(1e-7));
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::abs(double(narrow[i]) - exact[i]) < 1e-7);
}

TEST_CASE("sequence cross entropy: labels, options, and nothing") {
  edl::shape const output{1, 4, 5};
  CHECK(sequence_cross_entropy::labels(output) == 4);
  CHECK(sequence_cross_entropy::labels({3, 4, 5}) == 12);
  CHECK(sequence_cross_entropy::valid(-1, output));
  CHECK(sequence_cross_entropy::valid(4, output));
  CHECK(!sequence_cross_entropy::valid(5, output));
  CHECK(!sequence_cross_entropy::valid(-2, output));
  CHECK(!sequence_cross_entropy{.label_smoothing = -0.1f}.options_fit(output));
  CHECK(!sequence_cross_entropy{.class_weights = {1, 2}}.options_fit(output));
  CHECK(check::value(sequence_cross_entropy{}, output, 0, std::vector<float>{}, labels{}) == 0);
}

}  // namespace loss_sequence_cross_entropy_test

namespace loss_softmax_focal_test {

using edl::nn::softmax_focal;
using labels = std::vector<std::int32_t>;

TEST_CASE("softmax focal: the formula with probabilities") {
  auto const x = check::normal<double>(20, 1, 2);
  labels const y{0, 3, 1, 1, 2};
  for (float const gamma : {0.5f, 1.0f, 2.0f, 3.5f}) {
    double expected = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += std::exp(x[4 * i + k]);
      double const p = std::exp(x[4 * i + std::size_t(y[i])]) / sum;
      expected -= std::pow(1 - p, double(gamma)) * std::log(p);
    }
    CHECK(check::value(softmax_focal{.gamma = gamma}, {.channels = 4}, 5, x, y) ==
          doctest::Approx(expected / 5).epsilon(1e-12));
    check::gradient(softmax_focal{.gamma = gamma}, {.channels = 4}, 5, x, y);
    check::gradient(softmax_focal{gamma, {1, 2, 0.5f, 0}}, {.channels = 4}, 5, x, y);
  }
}

TEST_CASE("softmax focal: without focus it is cross entropy") {
  auto const x = check::normal<double>(20, 2, 3);
  labels const y{0, 3, 1, 1, 2};
  CHECK(check::value(softmax_focal{.gamma = 0}, {.channels = 4}, 5, x, y) ==
        doctest::Approx(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 4}, 5, x, y)));
  check::gradient(softmax_focal{.gamma = 0}, {.channels = 4}, 5, x, y);
}

TEST_CASE("softmax focal: extreme logits") {
  std::vector<float> const x{1e4f, -1e4f, -1e4f, 1e4f};
  for (float const gamma : {0.0f, 0.5f, 2.0f}) {
    std::vector<float> dx(4);
    CHECK(softmax_focal{.gamma = gamma}({.channels = 2}, 2, edl::view<float>(x),
                                        edl::view<std::int32_t>(labels{0, 0}), dx) == doctest::Approx(1e4));
    CHECK(dx == std::vector<float>{0, 0, -0.5f, 0.5f});
  }
}

TEST_CASE("softmax focal: labels are classes, and options have ranges") {
  CHECK(check::value(softmax_focal{}, {.channels = 4}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(softmax_focal::valid(3, {.channels = 4}));
  CHECK(!softmax_focal::valid(4, {.channels = 4}));
  CHECK(!softmax_focal::valid(-1, {.channels = 4}));
  CHECK(!softmax_focal{.gamma = -1}.options_fit({.channels = 4}));
  CHECK(!softmax_focal{.class_weights = {1, 2}}.options_fit({.channels = 4}));
}

}  // namespace loss_softmax_focal_test

namespace loss_sigmoid_cross_entropy_test {

using edl::nn::sigmoid_cross_entropy;
using labels = std::vector<float>;

TEST_CASE("sigmoid cross entropy: the formula with logarithms of probabilities") {
  auto const x = check::normal<double>(24, 1, 3);
  labels y(24);
  double expected = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    y[i] = float(i % 3) / 2;
    double const p = 1 / (1 + std::exp(-x[i]));
    expected -= double(y[i]) * std::log(p) + (1 - double(y[i])) * std::log(1 - p);
  }
  CHECK(check::value(sigmoid_cross_entropy{}, {.channels = 4}, 6, x, y) ==
        doctest::Approx(expected / 24).epsilon(1e-12));
}

TEST_CASE("sigmoid cross entropy: gradients are those of central differences") {
  check::gradient(sigmoid_cross_entropy{}, {}, 5, check::normal<double>(5, 2, 3), {0, 1, 1, 0, 0.25f});
  check::gradient(sigmoid_cross_entropy{}, {.height = 2, .channels = 2}, 2, check::normal<double>(8, 3),
                  {0, 1, 1, 0, 1, 0.5f, 0, 1});
}

TEST_CASE("sigmoid cross entropy: label smoothing moves labels towards 1/2") {
  auto const x = check::normal<double>(6, 4, 3);
  labels const y{0, 1, 0.25f, 1, 0, 0.5f};
  labels moved(6);
  for (std::size_t i = 0; i < 6; ++i) moved[i] = y[i] * 0.75f + 0.125f;
  CHECK(check::value(sigmoid_cross_entropy{.label_smoothing = 0.25f}, {}, 6, x, y) ==
        doctest::Approx(check::value(sigmoid_cross_entropy{}, {}, 6, x, moved)).epsilon(1e-14));
  check::gradient(sigmoid_cross_entropy{.label_smoothing = 0.25f}, {.channels = 2}, 3, x, y);
  std::vector<float> const far{1e4f, -1e4f};
  std::vector<float> dx(2);
  CHECK(sigmoid_cross_entropy{.label_smoothing = 0.25f}(
            {}, 2, edl::view<float>(far), edl::view<float>(labels{1, 0}), dx) == doctest::Approx(1250));
  CHECK(dx == std::vector<float>{0.0625f, -0.0625f});
}

TEST_CASE("sigmoid cross entropy: large logits do not overflow") {
  std::vector<float> const x{1e30f, -1e30f, 1000, -1000};
  std::vector<float> dx(4);
  labels const y{1, 0, 0, 1};
  CHECK(sigmoid_cross_entropy{}({}, 4, edl::view<float>(x), edl::view<float>(y), dx) == doctest::Approx(500));
  CHECK(dx == std::vector<float>{0, 0, 0.25f, -0.25f});
}

TEST_CASE("sigmoid cross entropy: an empty batch has no loss, labels are probabilities") {
  CHECK(check::value(sigmoid_cross_entropy{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(sigmoid_cross_entropy::valid(0, {}));
  CHECK(sigmoid_cross_entropy::valid(1, {}));
  CHECK(!sigmoid_cross_entropy::valid(1.001f, {}));
  CHECK(!sigmoid_cross_entropy::valid(-0.001f, {}));
  CHECK(!sigmoid_cross_entropy::valid(std::numeric_limits<float>::quiet_NaN(), {}));
}

}  // namespace loss_sigmoid_cross_entropy_test

namespace loss_sigmoid_focal_test {

using edl::nn::sigmoid_focal;
using labels = std::vector<float>;

TEST_CASE("sigmoid focal: the formula with probabilities") {
  auto const x = check::normal<double>(24, 1, 2);
  labels y(24);
  for (float const gamma : {0.5f, 1.0f, 2.0f, 3.5f}) {
    double expected = 0;
    for (std::size_t i = 0; i < 24; ++i) {
      y[i] = i % 3 == 0;
      double const p = 1 / (1 + std::exp(-x[i])), right = y[i] > 0 ? p : 1 - p;
      expected -= (y[i] > 0 ? 0.25 : 0.75) * std::pow(1 - right, double(gamma)) * std::log(right);
    }
    CHECK(check::value(sigmoid_focal{.gamma = gamma}, {.channels = 4}, 6, x, y) ==
          doctest::Approx(expected / 24).epsilon(1e-12));
    check::gradient(sigmoid_focal{.gamma = gamma, .alpha = 0.6f}, {.channels = 4}, 6, x, y);
  }
}

TEST_CASE("sigmoid focal: without focus it is half of cross entropy") {
  auto const x = check::normal<double>(8, 2, 3);
  labels const y{0, 1, 1, 0, 1, 0, 0, 1};
  sigmoid_focal const loss{.gamma = 0, .alpha = 0.5f};
  CHECK(check::value(loss, {}, 8, x, y) ==
        doctest::Approx(check::value(edl::nn::sigmoid_cross_entropy{}, {}, 8, x, y) / 2));
  check::gradient(loss, {}, 8, x, y);
}

TEST_CASE("sigmoid focal: extreme logits") {
  std::vector<float> const x{1e4f, -1e4f, 1e4f, -1e4f};
  labels const y{1, 0, 0, 1};
  for (float const gamma : {0.0f, 0.5f, 2.0f}) {
    std::vector<float> dx(4);
    sigmoid_focal const loss{.gamma = gamma, .alpha = 0.5f};
    CHECK(loss({}, 4, edl::view<float>(x), edl::view<float>(y), dx) == doctest::Approx(2500));
    CHECK(dx == std::vector<float>{0, 0, 0.125f, -0.125f});
  }
}

TEST_CASE("sigmoid focal: labels are 0 or 1, and options have ranges") {
  CHECK(check::value(sigmoid_focal{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(sigmoid_focal::valid(1, {}));
  CHECK(!sigmoid_focal::valid(0.5f, {}));
  CHECK(sigmoid_focal{}.options_fit({}));
  CHECK(!sigmoid_focal{.gamma = -1}.options_fit({}));
  CHECK(!sigmoid_focal{.alpha = 2}.options_fit({}));
}

}  // namespace loss_sigmoid_focal_test

namespace loss_hinge_test {

using edl::nn::hinge;
using labels = std::vector<float>;

TEST_CASE("hinge: what lacks of the margin") {
  // 1 − 0.25, 1 + 0.25, nothing, 1 + 1e4
  std::vector<double> const x{0.25, 0.25, -3, 1e4};
  labels const y{1, 0, 0, 0};
  CHECK(check::value(hinge{}, {}, 4, x, y) == doctest::Approx((0.75 + 1.25 + 10001) / 4));
  CHECK(check::value(hinge{.squared = true}, {}, 4, x, y) ==
        doctest::Approx((0.75 * 0.75 + 1.25 * 1.25 + 10001.0 * 10001.0) / 4));
  CHECK(check::value(hinge{.margin = 0.125f}, {}, 2, std::vector<double>{0.25, 0.25}, labels{1, 0}) ==
        doctest::Approx(0.375 / 2));
  std::vector<double> dx(4);
  edl::nn::as_loss(hinge{})({}, 4, edl::view<double>(x), edl::view<float>(y), dx);
  CHECK(dx == std::vector<double>{-0.25, 0.25, 0, 0.25});
}

TEST_CASE("hinge: gradients are those of central differences") {
  labels const y{0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0};
  for (bool const squared : {false, true})
    check::gradient(hinge{.margin = 0.7f, .squared = squared}, {.channels = 2}, 6,
                    check::normal<double>(12, 1, 2), y);
}

TEST_CASE("hinge: a NaN stays, nothing is 0, labels are 0 or 1, the margin is above 0") {
  std::vector<float> const x{std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> dx(1);
  CHECK(std::isnan(edl::nn::as_loss(hinge{})({}, 1, edl::view<float>(x), edl::view<float>(labels{0}), dx)));
  CHECK(std::isnan(dx[0]));
  CHECK(check::value(hinge{}, {}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(edl::nn::derived_loss<hinge>::valid(0, {}));
  CHECK(edl::nn::derived_loss<hinge>::valid(1, {}));
  CHECK(!edl::nn::derived_loss<hinge>::valid(-1, {}));
  CHECK(!edl::nn::derived_loss<hinge>::valid(0.5f, {}));
  CHECK(!hinge{.margin = 0}.options_fit({}));
}

}  // namespace loss_hinge_test

namespace loss_kullback_leibler_test {

using edl::nn::kullback_leibler;
using labels = std::vector<float>;

TEST_CASE("kullback-leibler: the formula with probabilities") {
  std::vector<double> const x{1, 2, 3, 0, -1, 0.5};
  labels const z{0.25f, 0.25f, 0.5f, 0, 0.75f, 0.25f};
  double expected = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) sum += std::exp(x[k]);
    for (std::size_t k = 3 * i; k < 3 * i + 3; ++k)
      if (z[k] > 0) expected += double(z[k]) * std::log(double(z[k]) / (std::exp(x[k]) / sum));
  }
  CHECK(check::value(kullback_leibler{}, {.channels = 3}, 2, x, z) ==
        doctest::Approx(expected / 2).epsilon(1e-13));
  // Of itself, nothing; of a certain class, cross entropy.
  CHECK(std::abs(check::value(kullback_leibler{}, {.channels = 2}, 1, std::vector<double>{0, std::log(3.0)},
                              {0.25f, 0.75f})) < 1e-15);
  CHECK(check::value(kullback_leibler{}, {.channels = 3}, 1, std::vector<double>{1, 2, 3}, {0, 1, 0}) ==
        doctest::Approx(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 3}, 1,
                                     std::vector<double>{1, 2, 3}, {1})));
}

TEST_CASE("kullback-leibler: gradients are those of central differences") {
  check::gradient(kullback_leibler{}, {.channels = 3}, 3, check::normal<double>(9, 1, 3),
                  {0.25f, 0.25f, 0.5f, 0, 1, 0, 0.125f, 0.5f, 0.375f});
}

TEST_CASE("kullback-leibler: extreme logits, a NaN, and nothing") {
  std::vector<float> const x{1e4f, -1e4f, -1e4f, 1e4f};
  std::vector<float> dx(4);
  CHECK(edl::nn::as_loss(kullback_leibler{})({.channels = 2}, 2, edl::view<float>(x),
                                             edl::view<float>(labels{1, 0, 1, 0}),
                                             dx) == doctest::Approx(1e4));
  CHECK(dx == std::vector<float>{0, 0, -0.5f, 0.5f});
  std::vector<float> const bad{std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK(std::isnan(check::value(kullback_leibler{}, {.channels = 2}, 1, bad, {0, 1})));
  CHECK(check::value(kullback_leibler{}, {.channels = 2}, 0, std::vector<float>{}, labels{}) == 0);
  CHECK(edl::nn::derived_loss<kullback_leibler>::valid(1, {}));
  CHECK(!edl::nn::derived_loss<kullback_leibler>::valid(-0.1f, {}));
  CHECK(!edl::nn::derived_loss<kullback_leibler>::valid(1.1f, {}));
}

}  // namespace loss_kullback_leibler_test
