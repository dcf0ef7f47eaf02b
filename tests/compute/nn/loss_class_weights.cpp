// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compute/nn/loss_check.hpp"
#include "edl/compute/nn/loss/class_weights.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/compute/nn/losses.hpp"

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
