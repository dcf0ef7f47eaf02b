// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/loss/loss.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/compute/nn/losses.hpp"

namespace loss_loss_test {

namespace {

struct no_labels {
  static constexpr bool class_labels = true;
};
struct labels_are_text {
  using label = std::string;
  static constexpr bool class_labels = true;
};

static_assert(edl::nn::loss_function<edl::nn::softmax_cross_entropy>);
static_assert(edl::nn::loss_function<edl::nn::sigmoid_cross_entropy>);
static_assert(edl::nn::loss_function<edl::nn::mean_squared_error>);
static_assert(edl::nn::loss_function<edl::nn::sequence_cross_entropy>);
static_assert(edl::nn::is_loss_expression<edl::nn::huber> && edl::nn::is_loss_expression<edl::nn::hinge>);
static_assert(edl::nn::loss_function<edl::nn::derived_loss<edl::nn::kullback_leibler>> &&
              edl::nn::loss_function<edl::nn::triplet>);
static_assert(edl::nn::loss_function<edl::nn::sigmoid_focal> &&
              edl::nn::loss_function<edl::nn::softmax_focal>);
static_assert(edl::nn::needs_whole_batch<edl::nn::triplet> && edl::nn::has_own_labels<edl::nn::triplet>);
static_assert(!edl::nn::has_own_labels<edl::nn::softmax_focal>);
static_assert(edl::nn::options_fit(edl::nn::mean_squared_error{}, {}));
static_assert(!edl::nn::loss_function<no_labels>);
static_assert(!edl::nn::loss_function<labels_are_text>);
static_assert(!edl::nn::loss_function<float>);

}  // namespace

TEST_CASE("a loss says how many labels a sample has") {
  edl::shape const output{2, 3, 4};
  CHECK(edl::nn::softmax_cross_entropy::labels(output) == 1);
  CHECK(edl::nn::sigmoid_cross_entropy::labels(output) == 24);
  CHECK(edl::nn::mean_squared_error::labels(output) == 24);
}

}  // namespace loss_loss_test

namespace loss_class_weights_test {

namespace nn = edl::nn;

namespace {

constexpr nn::softmax_cross_entropy weighted{.class_weights = {1, 0.5f, 4}};
static_assert(weighted.options_fit({.channels = 3}) && !weighted.options_fit({.channels = 4}));
static_assert(weighted.on_host() && !nn::softmax_cross_entropy{}.on_host());
static_assert(nn::runs_on_accelerator(nn::softmax_cross_entropy{}) && !nn::runs_on_accelerator(weighted));
static_assert(nn::runs_on_accelerator(nn::sigmoid_cross_entropy{.label_smoothing = 0.1f}));
static_assert(!nn::runs_on_accelerator(nn::sigmoid_cross_entropy{.class_weights = {1, 2}}));
static_assert(!nn::runs_on_accelerator(nn::huber{}) &&
              !nn::runs_on_accelerator(nn::sequence_cross_entropy{}));
static_assert(!nn::softmax_cross_entropy{.class_weights = {1, -1}}.options_fit({.channels = 2}));
static_assert(!nn::softmax_cross_entropy{.label_smoothing = 1}.options_fit({.channels = 2}));
static_assert(nn::sigmoid_cross_entropy{.class_weights = {1, 3}}.options_fit({.channels = 5}));
static_assert(!nn::sigmoid_cross_entropy{.class_weights = {1, 3, 1}}.options_fit({.channels = 3}));

}  // namespace

TEST_CASE("class weights: none are ones, and what is no number does not fit") {
  CHECK(nn::class_weights{}[63] == 1);
  CHECK(nn::class_weights{}.fit(1000));
  CHECK(nn::class_weights{2, 3}[1] == 3);
  CHECK(!nn::class_weights{1, std::numeric_limits<float>::infinity()}.fit(2));
}

TEST_CASE("class weights: the loss of a sample is multiplied by the weight of its class") {
  auto const x = check::normal<double>(12, 1, 3);
  std::vector<std::int32_t> const y{0, 1, 2, 1};
  for (float const smoothing : {0.0f, 0.3f}) {
    nn::softmax_cross_entropy const plain{smoothing};
    nn::softmax_cross_entropy const l{smoothing, {1, 0.5f, 4}};
    double expected = 0;
    for (std::size_t i = 0; i < 4; ++i)
      expected +=
          double(l.class_weights[std::size_t(y[i])]) *
          check::value(plain, {.channels = 3}, 1,
                       std::vector<double>(x.begin() + long(3 * i), x.begin() + long(3 * i + 3)), {y[i]});
    CHECK(check::value(l, {.channels = 3}, 4, x, y) == doctest::Approx(expected / 4).epsilon(1e-13));
    check::gradient(l, {.channels = 3}, 4, x, y);
  }
}

TEST_CASE("class weights: no and yes of a sigmoid, and what is between them") {
  nn::sigmoid_cross_entropy const l{.class_weights = {0.5f, 3}}, plain{};
  std::vector<double> const x{1.5, -2, 0.25};
  for (std::size_t i = 0; i < 3; ++i) {
    float const label = float(i) / 2;
    CHECK(check::value(l, {}, 1, std::vector<double>{x[i]}, {label}) ==
          doctest::Approx((0.5 + 2.5 * double(label)) *
                          check::value(plain, {}, 1, std::vector<double>{x[i]}, {label})));
  }
  check::gradient(l, {}, 3, x, {0, 0.5f, 1});
}

}  // namespace loss_class_weights_test

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
