// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/embedding.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"

namespace embedding_test {

namespace nn = edl::nn;

namespace {

/// Ids of 7, some of them several times.
std::vector<double> ids(std::size_t n) {
  std::vector<double> of(n);
  for (std::size_t i = 0; i < n; ++i) of[i] = double(i * i % 7);
  return of;
}

template <nn::layer L>
void check_parameters(L const& l, edl::nn::pass_size batch) {
  lone_layer<L> h{.l = l, .in = {1, 1, 5}, .batch = batch};
  h.x = ids(h.x.size());
  h.value();
  h.backward(false);
  auto const gradients = h.gradients;
  CHECK(h.error(h.parameters, gradients) < 1e-7);
  h.value();
  h.backward(false);
  CHECK(h.gradients == gradients);
}

}  // namespace

TEST_CASE("an embedding has a row for each id") {
  nn::embedding const l{.vocabulary = 7, .width = 4};
  CHECK(l.output({1, 1, 5}) == edl::shape{1, 5, 4});
  CHECK(nn::count(l, {1, 1, 5}).parameters == 28);
  auto const layout = nn::layout_of(l, {1, 1, 5});
  REQUIRE(layout.variables.size() == 1);
  CHECK(layout.variables[0].name == "embeddings");
  CHECK(layout.variables[0].dims == edl::extents{7, 4});
  std::vector<double> drawn(28);
  nn::draw(l, {1, 1, 5}, edl::random_stream{1, 0}, 0, std::span(drawn));
  for (double const v : drawn) CHECK(std::abs(v) <= 0.05);
  CHECK(*std::ranges::max_element(drawn) > 0.02);
  CHECK(nn::is_portable(l, {1, 1, 5}));
}

TEST_CASE("a vocabulary that float32 cannot count, or none, does not fit") {
  using enum edl::fit;
  edl::shape const in{1, 1, 5};
  CHECK(nn::embedding{.vocabulary = 1, .width = 1}.check(in) == fits);
  CHECK(nn::embedding{.vocabulary = 1 << 24, .width = 1}.check(in) == fits);
  CHECK(nn::embedding{.vocabulary = (1 << 24) + 1, .width = 1}.check(in) == option_out_of_range);
  CHECK(nn::embedding{.vocabulary = 0, .width = 1}.check(in) == option_out_of_range);
  CHECK(nn::embedding{.vocabulary = 5}.check(in) == option_out_of_range);
}

TEST_CASE("gradients of an embedding, by itself and below other layers") {
  nn::embedding const l{.vocabulary = 9, .width = 3};  // some ids never come
  for (auto const keep : {nn::storage::recomputed, nn::storage::float32}) {
    check_parameters(l, {3, keep});
    check_parameters(nn::sequential(l, nn::dense{.units = 4}), {1, keep});
    check_parameters(nn::sequential(l, nn::global_average_pool{}, nn::tanh{}, nn::dense{.units = 2}),
                     {4, keep});
    check_parameters(
        nn::sequential(nn::concat(nn::sequential(l, nn::flatten{}),
                                  nn::sequential(nn::embedding{.vocabulary = 7, .width = 2},
                                                 nn::conv2d{.filters = 3, .kernel = {1, 2}}, nn::flatten{})),
                       nn::dense{.units = 2}),
        {2, keep});
  }
}

TEST_CASE("no gradient goes to ids") {
  lone_layer<nn::embedding> h{.l = {.vocabulary = 7, .width = 2}, .in = {1, 1, 5}};
  h.x = ids(h.x.size());
  h.forward();
  h.backward();
  CHECK(h.dx == std::vector<double>(h.x.size()));
}

}  // namespace embedding_test
