// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/loss/loss.hpp"

#include <doctest/doctest.h>

#include <string>

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
static_assert(edl::nn::loss_function<edl::nn::huber> && edl::nn::loss_function<edl::nn::hinge>);
static_assert(edl::nn::loss_function<edl::nn::kullback_leibler> && edl::nn::loss_function<edl::nn::triplet>);
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
