// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/group_norm.hpp"

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace group_norm_test {

namespace nn = edl::nn;

TEST_CASE("group normalisation gives each group of a sample mean 0 and variance 1, then gamma and beta") {
  lone_layer<nn::group_norm> h{.l = {.groups = 3, .epsilon = 1e-12f}, .in = {2, 2, 6}, .batch = 2};
  std::ranges::fill(h.parameters, 0);
  for (std::size_t k = 0; k < 6; ++k) h.parameters[k] = double(k) + 1;
  h.parameters[6 + 5] = 100;
  h.forward();
  for (std::size_t sample = 0; sample < 2; ++sample)
    for (std::size_t group = 0; group < 3; ++group) {
      double sum = 0, squares = 0;
      for (std::size_t place = 0; place < 4; ++place)
        for (std::size_t k = 2 * group; k < 2 * group + 2; ++k) {
          double const normal = (h.y[sample * 24 + place * 6 + k] - h.parameters[6 + k]) / h.parameters[k];
          sum += normal, squares += normal * normal;
        }
      CHECK(std::abs(sum) < 1e-10);
      CHECK(squares == doctest::Approx(8));
    }
}

TEST_CASE("with one group of one place it is layer normalisation") {
  lone_layer<nn::group_norm> h{.l = {.groups = 1}, .in = {1, 1, 7}};
  lone_layer<nn::layer_norm> other{.l = {}, .in = {1, 1, 7}};
  h.forward();
  other.forward();
  CHECK(greatest_difference(h.y, other.y) < 1e-12);
  h.backward();
  other.backward();
  CHECK(greatest_difference(h.dx, other.dx) < 1e-12);
}

TEST_CASE("gradients of group normalisation") {
  check_gradients(nn::group_norm{.groups = 1}, {2, 3, 4});
  check_gradients(nn::group_norm{.groups = 2, .epsilon = 0.5f}, {3, 2, 6});
  check_gradients(nn::group_norm{.groups = 4}, {2, 2, 4});
  check_gradients(nn::sequential(nn::dense{.units = 6}, nn::group_norm{.groups = 3}, nn::tanh{}), {1, 1, 4});
}

TEST_CASE("a group that is constant is beta, and its gradient is finite") {
  lone_layer<nn::group_norm> h{.l = {.groups = 1}, .in = {1, 1, 3}, .batch = 1};
  h.x = {4, 4, 4};
  h.parameters = {1, 1, 1, 0.5, 0, -0.5};
  h.forward();
  CHECK(h.y == std::vector<double>{0.5, 0, -0.5});
  h.backward();
  for (double const d : h.dx) CHECK(std::isfinite(d));
}

TEST_CASE("why group normalisation does not fit") {
  CHECK(nn::group_norm{}.check({2, 2, 48}) == edl::fit::groups_do_not_divide_channels);
  CHECK(nn::group_norm{}.check({2, 2, 64}) == edl::fit::fits);
  CHECK(nn::group_norm{.groups = 0}.check({2, 2, 64}) == edl::fit::option_out_of_range);
  CHECK(nn::group_norm{.groups = 1, .epsilon = 0}.check({2, 2, 64}) == edl::fit::option_out_of_range);
}

}  // namespace group_norm_test
