// SPDX-License-Identifier: Apache-2.0
#include "edl/nn/loss/loss.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/nn/losses.hpp"

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
