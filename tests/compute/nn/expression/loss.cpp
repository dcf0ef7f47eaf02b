// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/expression/loss.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/layer/activations.hpp"
#include "edl/compute/nn/loss/classification.hpp"
#include "edl/compute/nn/loss/heads.hpp"

namespace expression_loss_test {

namespace nn = edl::nn;

struct quantile {
  float share = 0.5f;
  constexpr bool options_fit(edl::shape) const { return share > 0 && share < 1; }
  constexpr auto loss(auto output, auto label) const {
    auto const below = label - output;
    return nn::mean(nn::max(share * below, (share - 1) * below));
  }
};

/// Of a record as a whole: neither its outputs nor its places stand alone.
struct relative {
  constexpr auto loss(auto output, auto label) const {
    auto const off = nn::sum(nn::square(nn::softmax(output) - label), nn::channels);
    return nn::sqrt(nn::mean(off, nn::places) + 0.1);
  }
};

TEST_CASE("a loss of one function: its value, and its gradient") {
  std::vector<float> const x{1, 2, 3};
  std::vector<float> dx(3);
  auto const l = nn::as_loss(quantile{.share = 0.9f});
  double const mean = l({1, 1, 3}, 1, edl::view<float>(x), edl::view<float>(std::vector<float>{2, 2, 2}), dx);
  CHECK(mean == doctest::Approx((0.9 + 0 + 0.1) / 3));
  CHECK(dx[0] == doctest::Approx(-0.3));
  CHECK(dx[2] == doctest::Approx(0.1 / 3));
  CHECK(l({1, 1, 3}, 0, edl::view<float>(), edl::view<float>(), {}) == 0);
}

TEST_CASE("the derived gradients of losses are those of central differences") {
  for (float const share : {0.5f, 0.9f})
    check::gradient(quantile{.share = share}, {.height = 3, .channels = 3}, 8,
                    check::normal<double>(72, 1, 2), check::normal<float>(72, 2));
  check::gradient(relative{}, {.height = 2, .channels = 3}, 5, check::normal<double>(30, 1, 2),
                  check::normal<float>(30, 2));
}

TEST_CASE("single precision gives what double does, for many records") {
  auto const narrow = check::normal<float>(70'000, 1), y = check::normal<float>(70'000, 2);
  std::vector<double> const wide(narrow.begin(), narrow.end());
  CHECK(
      check::value(quantile{.share = 0.9f}, {.channels = 7}, 10'000, narrow, y) ==
      doctest::Approx(check::value(quantile{.share = 0.9f}, {.channels = 7}, 10'000, wide, y)).epsilon(1e-6));
}

/// Cross entropy, with a power of what is wrong.
struct focal {
  double gamma = 2;
  nn::class_weights class_weights{};
  static constexpr bool class_labels = true;
  constexpr auto loss(auto output, auto label) const {
    auto const surprise = nn::logsumexp(output, nn::channels) -
                          nn::sum(output * nn::one_hot(label, output.channels()), nn::channels);
    return nn::mean(nn::pow(1 - nn::exp(-surprise), gamma) * surprise);
  }
};

TEST_CASE("a loss of classes, with weights of them") {
  using loss = nn::derived_loss<focal>;
  static_assert(loss::class_labels && std::same_as<loss::label, std::int32_t>);
  CHECK(loss::labels({1, 1, 3}) == 1);
  CHECK(loss::valid(2, {1, 1, 3}));
  CHECK(!loss::valid(3, {1, 1, 3}));
  CHECK(!loss::valid(-1, {1, 1, 3}));
  CHECK(loss{}.options_fit({1, 1, 3}));
  CHECK(!loss{{.class_weights = {1, 2}}}.options_fit({1, 1, 3}));

  int const batch = 40;
  auto const x = check::normal<double>(batch * 3, 1, 2);
  std::vector<float> const narrow(x.begin(), x.end());
  std::vector<std::int32_t> y;
  for (int i = 0; i < batch; ++i) y.push_back(i * i % 7 % 3);
  check::gradient(focal{}, {.channels = 3}, batch, x, y);
  check::gradient(focal{.class_weights = {1, 0, 2.5f}}, {.channels = 3}, batch, x, y);
  for (nn::class_weights const& weights : {nn::class_weights{}, nn::class_weights{1, 0, 2.5f}}) {
    focal const derived{.gamma = 1.5, .class_weights = weights};
    nn::softmax_focal const by_hand{.gamma = 1.5f, .class_weights = weights};
    std::vector<double> slope(x.size()), wanted(x.size());
    double const mean =
        nn::as_loss(derived)({.channels = 3}, batch, edl::view<double>(x), edl::view<std::int32_t>(y), slope);
    CHECK(mean == doctest::Approx(by_hand({.channels = 3}, batch, edl::view<double>(x),
                                          edl::view<std::int32_t>(y), wanted))
                      .epsilon(1e-9));
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(slope[i] == doctest::Approx(wanted[i]).epsilon(1e-9));
    CHECK(check::value(derived, {.channels = 3}, batch, narrow, y) == doctest::Approx(mean).epsilon(1e-5));
  }
}

/// Outside of two bounds.
struct outside {
  static constexpr int labels = 2;
  constexpr auto loss(auto output, auto label) const {
    return nn::mean(nn::square(nn::max(label[0] - output, 0) + nn::max(output - label[1], 0)));
  }
};

TEST_CASE("a label that is a list of numbers, also with weights of samples") {
  using loss = nn::derived_loss<outside>;
  static_assert(std::same_as<loss::label, float> && !loss::class_labels && loss::own_labels);
  CHECK(loss::labels({1, 1, 3}) == 2);
  CHECK(loss::valid(-3, {}));
  CHECK(!loss::valid(std::numeric_limits<float>::quiet_NaN(), {}));
  std::vector<float> const bounds{0, 1, -2, 2};  // of two records with two outputs
  CHECK(check::value(outside{}, {.channels = 2}, 2, std::vector<double>{-1, 0.5, 3, -4}, bounds) ==
        doctest::Approx((1 + 0 + 1 + 4) / 4.0));
  check::gradient(outside{}, {.channels = 2}, 2, {-1, 0.5, 3, -4}, bounds);
  check::gradient(outside{}, {}, 24, check::normal<double>(24, 1, 2), check::normal<float>(48, 2));

  constexpr nn::sample_weighted weighted{outside{}};
  static_assert(std::same_as<decltype(weighted.loss), loss> && decltype(weighted)::own_labels);
  CHECK(weighted.labels({.channels = 2}) == 3);
  CHECK(!weighted.valid(-1, {.channels = 2}, 2));
  std::vector<float> const with_weights{0, 1, 2, -2, 2, 0.5f};
  CHECK(check::value(weighted, {.channels = 2}, 2, std::vector<double>{-1, 0.5, 3, -4}, with_weights) ==
        doctest::Approx((2 * (1 + 0) + 0.5 * (1 + 4)) / 4.0));
  check::gradient(weighted, {.channels = 2}, 2, {-1, 0.5, 3, -4}, with_weights);

  constexpr auto heads = nn::heads(nn::head<"span", 1>(outside{}), nn::head<"cost", 1>(quantile{}));
  CHECK(heads.labels({.channels = 2}) == 3);
  CHECK(check::value(heads, {.channels = 2}, 1, std::vector<float>{3, 1}, {0, 1, 2}) == doctest::Approx(4.5));
}

TEST_CASE("labels are finite numbers, options are asked, and heads and sample weights take such a loss") {
  using loss = nn::derived_loss<quantile>;
  CHECK(loss::valid(-3, {}));
  CHECK(!loss::valid(std::numeric_limits<float>::infinity(), {}));
  CHECK(loss{}.options_fit({}));
  CHECK(!loss{{.share = 1}}.options_fit({}));
  constexpr nn::sample_weighted weighted{quantile{.share = 0.25f}};
  static_assert(std::same_as<decltype(weighted.loss), loss>);
  CHECK(check::value(weighted, {}, 2, std::vector<float>{1, 1}, {2, 1, 2, 3}) == doctest::Approx(0.5));
  constexpr auto heads =
      nn::heads(nn::head<"time", 1>(quantile{.share = 0.25f}), nn::head<"cost", 1>(quantile{.share = 0.25f}));
  CHECK(check::value(heads, {.channels = 2}, 1, std::vector<float>{1, 1}, {2, 2}) == doctest::Approx(0.5));
}

}  // namespace expression_loss_test
