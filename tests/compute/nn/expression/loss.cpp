// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/expression/loss.hpp"

#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/layer/activations.hpp"
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
