// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/tied.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"

namespace tied_test {

namespace nn = edl::nn;

namespace {

constexpr int vocabulary = 7, width = 4, length = 5;
constexpr edl::shape in{1, 1, length};
constexpr nn::embedding rows{.vocabulary = vocabulary, .width = width};
constexpr nn::dense each{.units = width, .each_place = true};
constexpr auto block = nn::residual(nn::sequential(nn::rms_norm{}, each, nn::silu{}));

template <nn::layer L>
lone_layer<L> on_ids(L const& l, edl::nn::pass_size batch) {
  lone_layer<L> h{.l = l, .in = in, .batch = batch};
  for (std::size_t i = 0; i < h.x.size(); ++i) h.x[i] = double(i * i % vocabulary);
  return h;
}

/// The layers, with a last product of its own whose kernel is the table, turned.
template <class... Layers>
void check_against_untied(edl::nn::pass_size batch, Layers const&... layers) {
  auto tied = on_ids(nn::tied(rows, layers...), batch);
  auto apart = on_ids(
      nn::sequential(rows, layers..., nn::dense{.units = vocabulary, .each_place = true, .use_bias = false}),
      batch);
  std::size_t const table = vocabulary * width, kernel = apart.parameters.size() - table;
  REQUIRE(tied.parameters.size() == kernel);
  std::ranges::copy(tied.parameters, apart.parameters.begin());
  for (std::size_t v = 0; v < vocabulary; ++v)
    for (std::size_t k = 0; k < width; ++k)
      apart.parameters[kernel + k * vocabulary + v] = tied.parameters[v * width + k];
  apart.dy = tied.dy;
  tied.value(), apart.value();
  tied.backward(false), apart.backward(false);
  auto const near = [](double a, double b) { return std::abs(a - b) <= 1e-12 * (1 + std::abs(b)); };
  for (std::size_t i = 0; i < tied.y.size(); ++i) REQUIRE(near(tied.y[i], apart.y[i]));
  for (std::size_t i = 0; i < kernel; ++i) {
    double expected = apart.gradients[i];
    if (i < table) expected += apart.gradients[kernel + i % width * vocabulary + i / width];
    CAPTURE(i);
    REQUIRE(near(tied.gradients[i], expected));
  }
}

}  // namespace

TEST_CASE("tied layers are those with a product of their own, and the table has the gradient of both") {
  for (auto const keep : {nn::storage::recomputed, nn::storage::float32}) {
    check_against_untied({3, keep}, block);
    check_against_untied({1, keep}, each, nn::layer_norm{});
    check_against_untied({2, keep}, nn::positions{.most = length},
                         nn::repeat<2>(nn::residual(nn::attention{.heads = 2, .causal = true})), block);
    check_against_untied({2, keep}, nn::identity{});
  }
}

TEST_CASE("gradients of tied layers are those of differences, and the same again") {
  auto h = on_ids(nn::tied(rows, block, nn::layer_norm{}), 2);
  h.value();
  h.backward(false);
  auto const gradients = h.gradients;
  CHECK(h.error(h.parameters, gradients) < 1e-7);
  h.value();
  h.backward(false);
  CHECK(h.gradients == gradients);
}

TEST_CASE("tied layers have an id's number for each place, and are named as in one chain") {
  constexpr auto net = nn::sequential(nn::ids{.count = length}, nn::tied(rows, block, nn::rms_norm{}));
  static_assert(net.body.output(in) == edl::shape{1, length, vocabulary});
  auto const layout = nn::layout_of(net.body, net.input);
  std::vector<std::string> names;
  for (auto const& v : layout.variables) names.push_back(v.name);
  CHECK(names == std::vector<std::string>{"embedding/embeddings", "residual/body/rms_normalization/gamma",
                                          "residual/body/dense/kernel", "residual/body/dense/bias",
                                          "rms_normalization/gamma"});
  constexpr auto longer = nn::sequential(nn::ids{.count = length}, nn::tied(rows, block), nn::tanh{});
  CHECK(nn::layout_of(longer.body, longer.input).variables[0].name == "embedding/embeddings");
  using enum edl::fit;
  CHECK(nn::tied(rows, nn::dense{.units = width + 1, .each_place = true}).check(in) ==
        branches_differ_in_shape);
  CHECK(nn::tied(nn::embedding{.vocabulary = 0, .width = 4}, block).check(in) == option_out_of_range);
}

}  // namespace tied_test
