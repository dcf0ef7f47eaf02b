// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "compute/nn/loss_check.hpp"
#include "compute/nn/metric_check.hpp"
#include "edl/compute/nn/loss/sequence_cross_entropy.hpp"
#include "edl/compute/nn/loss/softmax_cross_entropy.hpp"
#include "edl/compute/nn/metric/perplexity.hpp"

namespace metric_perplexity_test {

using edl::perplexity;
using classes = std::vector<std::int32_t>;

TEST_CASE("perplexity: as many as there are classes, where all are as likely") {
  CHECK(check::metric<perplexity>({.channels = 7}, 2, std::vector<float>(14, 3), classes{1, 6}) ==
        doctest::Approx(7));
}

TEST_CASE("perplexity: exp of the loss, and each place counts the same") {
  auto const x = check::normal<float>(40 * 5, 1, 2);
  classes y(40);
  for (std::size_t i = 0; i < 40; ++i) y[i] = std::int32_t(i % 5);
  CHECK(check::metric<perplexity>({.channels = 5}, 40, x, y) ==
        doctest::Approx(std::exp(check::value(edl::nn::softmax_cross_entropy{}, {.channels = 5}, 40, x, y)))
            .epsilon(1e-6));
  for (std::size_t i = 0; i < 40; i += 3) y[i] = -1;
  edl::shape const sequence{1, 4, 5};
  CHECK(check::metric<perplexity>(sequence, 10, x, y) ==
        doctest::Approx(std::exp(check::value(edl::nn::sequence_cross_entropy{}, sequence, 10, x, y)))
            .epsilon(1e-6));
  check::merges<perplexity>(sequence, 10, x, y, 4);
}

TEST_CASE("perplexity: far out it is large and no NaN, and of nothing it is 0") {
  std::vector<float> const x{100, -100};
  CHECK(check::metric<perplexity>({.channels = 2}, 1, x, classes{1}) ==
        doctest::Approx(std::exp(200.0)).epsilon(1e-6));
  CHECK(check::nothing<perplexity>() == 0);
}

}  // namespace metric_perplexity_test
