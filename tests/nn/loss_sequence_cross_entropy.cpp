// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "edl/nn/loss/loss.hpp"
#include "edl/nn/loss/sequence_cross_entropy.hpp"
#include "edl/nn/loss/softmax_cross_entropy.hpp"
#include "nn/loss_check.hpp"

using edl::nn::sequence_cross_entropy, edl::nn::softmax_cross_entropy;
using labels = std::vector<std::int32_t>;
static_assert(edl::nn::loss_function<sequence_cross_entropy>);

TEST_CASE("sequence cross entropy is the mean of the places' cross entropies") {
  auto const x = check::normal<double>(2 * 3 * 5, 1, 2);
  labels const y{0, 4, 2, 1, 1, 3};
  for (float const smoothing : {0.0f, 0.2f})
    CHECK(
        check::value(sequence_cross_entropy{.label_smoothing = smoothing}, {1, 3, 5}, 2, x, y) ==
        doctest::Approx(check::value(softmax_cross_entropy{.label_smoothing = smoothing}, {1, 1, 5}, 6, x, y))
            .epsilon(1e-14));
  CHECK(sequence_cross_entropy::labels({1, 3, 5}) == 3);
}

TEST_CASE("sequence cross entropy: gradients are those of central differences") {
  for (float const smoothing : {0.0f, 0.3f}) {
    check::gradient(sequence_cross_entropy{.label_smoothing = smoothing}, {1, 4, 3}, 2,
                    check::normal<double>(24, 2, 2), {0, 1, 2, 0, 2, 2, 1, 0});
    check::gradient(sequence_cross_entropy{.label_smoothing = smoothing}, {1, 4, 3}, 2,
                    check::normal<double>(24, 3, 2), {-1, 1, -1, 0, 2, 2, -1, -1});
  }
}

TEST_CASE("places with the ignored label do not count") {
  std::vector<double> const x{1, 2, 3, 0, 9, 0, 3, 1, 2};
  double const first = check::value(softmax_cross_entropy{}, {1, 1, 3}, 1, std::vector<double>{1, 2, 3}, {2}),
               third = check::value(softmax_cross_entropy{}, {1, 1, 3}, 1, std::vector<double>{3, 1, 2}, {1});
  CHECK(check::value(sequence_cross_entropy{}, {1, 3, 3}, 1, x, {2, -1, 1}) ==
        doctest::Approx((first + third) / 2));
  CHECK(check::value(sequence_cross_entropy{.ignored = 0}, {1, 3, 3}, 1, x, {2, 0, 1}) ==
        doctest::Approx((first + third) / 2));
  CHECK(check::value(sequence_cross_entropy{}, {1, 3, 3}, 1, x, {-1, -1, -1}) == 0);
}

TEST_CASE("sequence cross entropy: labels are classes, or none") {
  CHECK(sequence_cross_entropy::valid(0, {1, 3, 5}));
  CHECK(sequence_cross_entropy::valid(4, {1, 3, 5}));
  CHECK(sequence_cross_entropy::valid(-1, {1, 3, 5}));
  CHECK_FALSE(sequence_cross_entropy::valid(5, {1, 3, 5}));
  CHECK_FALSE(sequence_cross_entropy::valid(-2, {1, 3, 5}));
}
