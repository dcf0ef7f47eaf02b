// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/heads.hpp"
#include "edl/compute/nn/losses.hpp"

namespace loss_heads_test {

namespace nn = edl::nn;

namespace {

constexpr auto two = nn::heads(nn::head<"click", 1>(nn::sigmoid_cross_entropy{}),
                               nn::head<"stars", 3>(nn::softmax_cross_entropy{}, 0.5f));
using loss_type = std::remove_cvref_t<decltype(two)>;
static_assert(nn::loss_function<loss_type>);

std::vector<float> const truth{1, 2, 0, 0, 0.25f, 1};  // three samples

}  // namespace

TEST_CASE("the loss of heads is the weighted sum of theirs, averaged over the batch") {
  auto const x = check::normal<double>(12, 1, 2);
  double expected = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    float const click = truth[2 * i];
    auto const stars = std::int32_t(truth[2 * i + 1]);
    expected += nn::sigmoid_cross_entropy{}({}, 1, edl::view<double>(x).subspan(4 * i, 1),
                                            edl::view<float>(&click, 1), {});
    expected += 0.5 * nn::softmax_cross_entropy{}({1, 1, 3}, 1, edl::view<double>(x).subspan(4 * i + 1, 3),
                                                  edl::view<std::int32_t>(&stars, 1), {});
  }
  CHECK(check::value(two, {1, 1, 4}, 3, x, truth) == doctest::Approx(expected / 3).epsilon(1e-12));
  CHECK(two({1, 1, 4}, 0, edl::view<double>{}, edl::view<float>{}, {}) == 0);
}

TEST_CASE("gradients of heads are those of central differences") {
  check::gradient(two, {1, 1, 4}, 3, check::normal<double>(12, 2, 2), truth);
}

TEST_CASE("a label is valid for its own head") {
  CHECK(loss_type::valid(0.5f, {}, 0));
  CHECK_FALSE(loss_type::valid(2, {}, 0));
  CHECK(loss_type::valid(2, {}, 1));
  CHECK_FALSE(loss_type::valid(3, {}, 1));
  CHECK_FALSE(loss_type::valid(1.5f, {}, 1));
  CHECK_FALSE(loss_type::valid(-1, {}, 1));
  CHECK_FALSE(loss_type::valid(std::numeric_limits<float>::quiet_NaN(), {}, 0));
  CHECK_FALSE(loss_type::valid(0, {}, 2));
}

TEST_CASE("a head has its own outputs, labels and name") {
  CHECK(loss_type::labels({}) == 2);
  CHECK(loss_type::fits({1, 1, 4}));
  CHECK_FALSE(loss_type::fits({1, 1, 5}));
  CHECK(loss_type::first_of<"stars">() == std::array<std::size_t, 2>{1, 1});
  CHECK(two.of<"stars">().weight.resolve({}, "it", 0, 1) == 0.5f);
}

}  // namespace loss_heads_test
