// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/sample_weighted.hpp"
#include "edl/compute/nn/losses.hpp"

namespace loss_sample_weighted_test {

namespace nn = edl::nn;

namespace {

constexpr nn::sample_weighted classes{nn::softmax_cross_entropy{.label_smoothing = 0.1f}};
constexpr nn::sample_weighted numbers{nn::mean_squared_error{}};
using classes_type = std::remove_cvref_t<decltype(classes)>;
static_assert(nn::loss_function<classes_type> && nn::weighs_samples<classes_type>);
static_assert(std::same_as<nn::unweighted_loss<classes_type>, nn::softmax_cross_entropy>);
static_assert(std::same_as<nn::unweighted_loss<nn::triplet>, nn::triplet>);

std::vector<float> const truth{1, 2, 0, 0.5f, 2, 1};       // three samples: class, weight
std::vector<float> const pairs{1, -2, 3, 0.5f, 4, 0.25f};  // two samples: two numbers, weight

/// A loss of one's own, whose second label is never below 0.
struct by_place : nn::mean_squared_error {
  static constexpr bool valid(float, edl::shape) { return true; }
  static constexpr bool valid(float l, edl::shape, std::size_t place) { return place == 0 || l >= 0; }
};

}  // namespace

TEST_CASE("a sample's loss counts by its weight, and the mean is over samples") {
  auto const x = check::normal<double>(9, 1, 2);
  double expected = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    auto const y = std::int32_t(truth[2 * i]);
    expected += double(truth[2 * i + 1]) * classes.loss({1, 1, 3}, 1, edl::view<double>(x).subspan(3 * i, 3),
                                                        edl::view<std::int32_t>(&y, 1), {});
  }
  CHECK(check::value(classes, {1, 1, 3}, 3, x, truth) == doctest::Approx(expected / 3).epsilon(1e-12));
  CHECK(classes({1, 1, 3}, 0, edl::view<double>{}, edl::view<float>{}, {}) == 0);
}

TEST_CASE("gradients by weights are those of central differences") {
  check::gradient(classes, {1, 1, 3}, 3, check::normal<double>(9, 2, 2), truth);
  check::gradient(numbers, {1, 1, 2}, 2, check::normal<double>(4, 3, 2), pairs);
}

TEST_CASE("by weights of 1 it is the loss itself") {
  auto const x = check::normal<double>(9, 4, 2);
  CHECK(check::value(classes, {1, 1, 3}, 3, x, {1, 1, 0, 1, 2, 1}) ==
        doctest::Approx(check::value(classes.loss, {1, 1, 3}, 3, x, {1, 0, 2})).epsilon(1e-12));
}

TEST_CASE("a sample of weight 0 is left out, whatever the network says of it") {
  double const none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> const x{none, none, none, 1, 2, 3};
  std::vector<double> dx(6, none);
  double const loss = classes({1, 1, 3}, 2, edl::view<double>(x),
                              edl::view<float>(std::vector<float>{0, 0, 1, 1}), std::span(dx));
  CHECK(std::isfinite(loss));
  CHECK(dx[0] == 0);
  CHECK(std::isfinite(dx[3]));
}

TEST_CASE("a label and a weight are valid in their places") {
  edl::shape const three{1, 1, 3};
  CHECK(classes_type::labels(three) == 2);
  CHECK(classes_type::valid(2, three, 0));
  CHECK_FALSE(classes_type::valid(3, three, 0));
  CHECK_FALSE(classes_type::valid(0.5f, three, 0));
  CHECK_FALSE(classes_type::valid(3e9f, three, 0));
  CHECK(classes_type::valid(0.5f, three, 1));
  CHECK(classes_type::valid(3e9f, three, 1));
  CHECK_FALSE(classes_type::valid(-1, three, 1));
  CHECK_FALSE(classes_type::valid(std::numeric_limits<float>::infinity(), three, 1));
  CHECK_FALSE(classes_type::valid(std::numeric_limits<float>::quiet_NaN(), three, 1));
  CHECK_FALSE(classes_type::fits({1, 1, 1}));
  CHECK(nn::sample_weighted<by_place>::valid(-1, {1, 1, 2}, 0));
  CHECK_FALSE(nn::sample_weighted<by_place>::valid(-1, {1, 1, 2}, 1));
}

}  // namespace loss_sample_weighted_test
