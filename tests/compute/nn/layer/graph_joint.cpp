// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/graph_joint.hpp"

#include <type_traits>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/input_place.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/padding_mask.hpp"
#include "edl/compute/nn/plan.hpp"

namespace graph_joint_test {

namespace nn = edl::nn;

namespace {

/// How each place goes with each other, and what it then gets of them.
constexpr auto scores = nn::graph([](auto x) {
  auto const a = x | nn::dense{.units = 5, .each_place = true};
  auto const weights = nn::matmul(a, x | nn::dense{.units = 5, .each_place = true} | nn::transpose{}) |
                       nn::scale{.factor = 0.4f} | nn::softmax{};
  return nn::matmul(weights, x) + x;
});

constexpr auto square = nn::graph([](auto x) { return nn::matmul(x, x); });

constexpr auto axes = nn::graph([](auto x) {
  auto const a = x | nn::reshape{.height = 2, .width = 3, .channels = 4};
  auto const b =
      a | nn::slice{.first = 1, .count = 3, .along = nn::places} | nn::reshape{.width = 0, .channels = 6};
  auto const c = a | nn::transpose{} | nn::slice{.first = 2, .count = 2} | nn::tanh{};
  return nn::concat(b | nn::dense{.units = 3}, c | nn::dense{.units = 2},
                    nn::matmul(c, b) | nn::dense{.units = 1});
});

/// Two results above each other, and one behind the other.
constexpr auto stacked = nn::graph([](auto x) {
  auto const a = x | nn::dense{.units = 2, .each_place = true} | nn::flatten{};
  auto const b = x | nn::slice{.count = 2} | nn::tanh{} | nn::flatten{};
  auto const above = nn::concat(a, b) | nn::reshape{.height = 2, .width = 3, .channels = 2};
  auto const behind = nn::concat(b, a, b) | nn::reshape{.width = 9, .channels = 2};
  return nn::concat(above | nn::conv2d{.filters = 2, .kernel = 2},
                    behind | nn::conv2d{.filters = 1, .kernel = {1, 8}});
});

}  // namespace

TEST_CASE("gradients of products, transpositions, other extents and slices of results") {
  check_gradients(scores, {1, 4, 3});
  check_gradients(scores, {2, 3, 1});
  check_gradients(scores, {1, 1, 1}, edl::mode::training, 1);
  check_gradients(square, {1, 3, 3});
  check_gradients(square, {1, 70, 70}, edl::mode::training, 1);
  check_gradients(square, {1, 1, 1});
  check_gradients(axes, {1, 1, 24});
  check_gradients(axes, {4, 3, 2});
  check_gradients(stacked, {1, 3, 4});
}

TEST_CASE("a product of results is one of matrices for each sample") {
  auto const of_two = nn::graph([](auto x) {
    auto const a = x | nn::slice{.count = 2, .along = nn::places};
    return nn::matmul(a, x | nn::slice{.first = 2, .count = 3, .along = nn::places});
  });
  lone_layer<std::remove_cvref_t<decltype(of_two)>> h{.l = of_two, .in = {1, 5, 3}, .batch = 2};
  CHECK(h.out == edl::shape{1, 2, 3});
  for (std::size_t i = 0; i < 30; ++i) h.x[i] = double(i);
  h.forward();
  CHECK(h.y == std::vector<double>{33, 36, 39, 114, 126, 138, 1158, 1206, 1254, 1374, 1431, 1488});
}

namespace {

constexpr auto picked_from = nn::inputs(nn::input<"rows">(nn::image{.height = 2, .width = 2, .channels = 2}),
                                        nn::input<"at">(nn::ids{.count = 3}));
constexpr auto picked = nn::graph(picked_from, [](auto rows, auto at) { return nn::gather(rows, at); });
constexpr auto picked_twice = nn::graph(picked_from, [](auto rows, auto at) {
  auto const a = rows | nn::dense{.units = 3, .each_place = true} | nn::tanh{};
  return nn::gather(a, at) * nn::gather(a | nn::dense{.units = 3, .each_place = true}, at) |
         nn::dense{.units = 2};
});

}  // namespace

TEST_CASE("gathering takes places by ids, and adds their gradients up") {
  lone_layer<std::remove_cvref_t<decltype(picked.body)>> h{.l = picked.body, .in = picked.input, .batch = 2};
  CHECK(h.out == edl::shape{1, 3, 2});
  h.x = {1, 2, 3, 4, 5, 6, 7, 8, /* at */ 3, 0, 3, 11, 12, 13, 14, 15, 16, 17, 18, /* at */ 1, 1, 2};
  h.dy = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  h.forward();
  CHECK(h.y == std::vector<double>{7, 8, 1, 2, 7, 8, 13, 14, 13, 14, 15, 16});
  h.backward();
  CHECK(h.dx == std::vector<double>{3, 4, 0, 0, 0, 0, 6, 8, 0, 0, 0, 0, 0, 16, 18, 11, 12, 0, 0, 0, 0, 0});
  CHECK(nn::reads_all_inputs(picked));
  int found = 0;
  nn::for_each_ids(picked.body, picked.input, nn::id_range{},
                   [&](nn::id_range ids, int vocabulary, bool none) {
                     ++found;
                     CHECK(ids.first == 8);
                     CHECK(ids.count == 3);
                     CHECK(vocabulary == 4);
                     CHECK(!none);
                   });
  CHECK(found == 1);

  lone_layer<std::remove_cvref_t<decltype(picked_twice.body)>> t{
      .l = picked_twice.body, .in = picked_twice.input, .batch = 2};
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < 3; ++i) t.x[s * 11 + 8 + i] = double((2 * s + i) * 3 % 4);
  t.value();
  t.backward();
  auto const gradients = t.gradients;
  CHECK(t.error(t.parameters, gradients) < 1e-7);
}

TEST_CASE("mistakes of products are found") {
  using enum nn::expression::mistake_kind;
  CHECK(square.wrong({1, 3, 3}).none());
  CHECK(square.wrong({3, 1, 3}).none());
  auto const found = square.wrong({1, 2, 3});
  CHECK(found.what == shapes_of_matrices);
  CHECK(found.first == edl::shape{1, 2, 3});
  CHECK(found.second == edl::shape{1, 2, 3});
  CHECK(axes.wrong({1, 1, 20}).none());  // what is wrong is a layer
  CHECK(nn::find_misfit(axes, {1, 1, 20}).wrong.what == shapes_of_reshape);
  auto const masked = [](auto const& l) {
    return nn::find_misfit(nn::masked(nn::padding_mask{}, nn::embedding{.vocabulary = 5, .width = 3}, l),
                           {1, 1, 3}, true)
        .why;
  };
  CHECK(masked(square) == edl::fit::sees_padding);
  CHECK(masked(nn::transpose{}) == edl::fit::sees_padding);
  CHECK(masked(nn::reshape{}) == edl::fit::sees_padding);
  CHECK(masked(nn::slice{.count = 2, .along = nn::places}) == edl::fit::sees_padding);
  CHECK(masked(nn::slice{.count = 2}) == edl::fit::fits);
}

}  // namespace graph_joint_test
