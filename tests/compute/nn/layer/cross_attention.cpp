// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/cross_attention.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/compute/nn/padding_mask.hpp"

namespace cross_attention_test {

namespace nn = edl::nn;
using edl::mode;

namespace {

/// The first two places ask the other ones.
constexpr auto two_to_others = nn::graph([](auto x) {
  auto const a = x | nn::slice{.first = 0, .count = 2, .along = nn::places} | nn::tanh{};
  auto const b = x | nn::slice{.first = 2, .count = 3, .along = nn::places};
  return nn::cross_attention(a, b, {.heads = 2});
});

/// Its result is used again, and what it is given as well; both sides are one result once.
constexpr auto used_again = nn::graph([](auto x) {
  auto const memory = x | nn::dense{.units = 4, .each_place = true} | nn::tanh{};
  auto const a = nn::cross_attention(x, memory, {.heads = 2, .dropout = 0.4f});
  auto const b = nn::cross_attention(a + x, memory, {.heads = 1, .use_bias = false});
  return nn::concat(a * b, nn::cross_attention(b, b), memory);
});

constexpr auto of_inputs = nn::graph(
    nn::inputs(nn::input<"asks">(nn::features{.count = 2}), nn::input<"memory">(nn::features{.count = 6})),
    [](auto asks, auto memory) {
      auto const known = memory | nn::reshape{.width = 3};
      return nn::cross_attention(asks, known) | nn::dense{.units = 2};
    });

constexpr auto with_itself = nn::graph([](auto x) { return nn::cross_attention(x, x, {.heads = 2}); });

std::string names_of(auto const& layer, edl::shape in) {
  std::string all;
  for (auto const& v : nn::layout_of(layer, in).variables) all += v.name + ' ';
  return all;
}

}  // namespace

TEST_CASE("gradients of cross attention") {
  check_gradients(two_to_others, {1, 5, 4});
  for (mode const m : {mode::training, mode::evaluation}) check_gradients(used_again, {1, 3, 4}, m);
  check_gradients(used_again, {2, 2, 4}, mode::training, 1);
  check_gradients(of_inputs.body, of_inputs.input);
  // More keys than a block has, more queries than a block has, one of each.
  auto const wide = nn::graph([](auto x) {
    auto const a = x | nn::slice{.first = 3, .count = 70, .along = nn::places};
    auto const one = x | nn::slice{.count = 1, .along = nn::places};
    return nn::cross_attention(a, x) + nn::cross_attention(a, one);
  });
  check_gradients(wide, {1, 270, 2}, mode::training, 1);
}

TEST_CASE("attention of a result to itself is attention") {
  constexpr std::size_t c = 4;
  lone_layer<std::remove_cvref_t<decltype(with_itself)>> cross{.l = with_itself, .in = {1, 5, c}};
  lone_layer<nn::attention> self{.l = {.heads = 2}, .in = {1, 5, c}};
  REQUIRE(cross.parameters.size() == self.parameters.size());
  auto const copy = [&](auto const& from, auto& to) {
    auto const *query = from.data(), *bias = query + c * c, *both = bias + c, *biases = both + 2 * c * c;
    for (std::size_t row = 0; row <= c; ++row) {  // the last is of biases
      auto* const at = to.data() + row * 3 * c;
      std::copy_n(row < c ? query + row * c : bias, c, at);
      std::copy_n(row < c ? both + row * 2 * c : biases, 2 * c, at + c);
    }
    std::copy(biases + 2 * c, from.data() + from.size(), to.data() + 3 * c * c + 3 * c);
  };
  copy(cross.parameters, self.parameters);
  for (auto* const all : {&cross.dy, &self.dy}) *all = cross.dy;
  cross.forward();
  self.forward();
  cross.backward();
  self.backward();
  std::vector<double> gradients(self.gradients.size());
  copy(cross.gradients, gradients);
  CHECK(greatest_difference(cross.y, self.y) < 1e-14);
  CHECK(greatest_difference(cross.dx, self.dx) < 1e-13);
  CHECK(greatest_difference(gradients, self.gradients) < 1e-13);
}

TEST_CASE("variables of cross attention have its name") {
  CHECK(names_of(with_itself, {1, 2, 4}) ==
        "cross_attention/query/kernel cross_attention/query/bias cross_attention/key_value/kernel "
        "cross_attention/key_value/bias cross_attention/output/kernel cross_attention/output/bias ");
  CHECK(names_of(nn::graph([](auto x) {
                   auto const a = nn::cross_attention(x, x, {.use_bias = false});
                   return nn::cross_attention(a, x, {.use_bias = false});
                 }),
                 {1, 2, 4}) ==
        "cross_attention/query/kernel cross_attention/key_value/kernel cross_attention/output/kernel "
        "cross_attention/query_1/kernel cross_attention/key_value_1/kernel cross_attention/output_1/kernel ");
}

TEST_CASE("cross attention may lie between parts that are computed again") {
  auto const course = [](nn::pass_size size) {
    lone_layer<std::remove_cvref_t<decltype(used_again)>> h{.l = used_again, .in = {1, 3, 4}, .batch = size};
    h.forward();
    h.backward();
    h.gradients.insert(h.gradients.end(), h.y.begin(), h.y.end());
    return h.gradients;
  };
  nn::pass_size size = 3;
  auto const whole = course(size);
  std::vector<std::uint16_t> const again(std::size_t(used_again.most), 1);
  size.again = again.data();
  CHECK(course(size) == whole);
}

TEST_CASE("mistakes of cross attention are found") {
  using enum nn::expression::mistake_kind;
  auto const wrong = [](nn::attention const& o, edl::shape in = {1, 3, 4}) {
    return nn::graph([&o](auto x) { return nn::cross_attention(x, x, o); }).wrong(in);
  };
  CHECK(wrong({}).none());
  CHECK(wrong({.heads = 3}).what == shapes_of_attention);
  CHECK(wrong({.heads = 0}).what == option_of_cross_attention);
  CHECK(wrong({.causal = true}).what == option_of_cross_attention);
  CHECK(wrong({.rotary = true}).what == option_of_cross_attention);
  CHECK(wrong({.heads = 2, .key_value_heads = 1}).what == option_of_cross_attention);
  CHECK(wrong({.window = 2}).what == option_of_cross_attention);
  CHECK(wrong({.softcap = 2}).what == option_of_cross_attention);
  CHECK(wrong({.qk_norm = true}).what == option_of_cross_attention);
  CHECK(wrong({.dropout = 1}).what == option_of_cross_attention);
  auto const two =
      nn::graph([](auto x) { return nn::cross_attention(x, x | nn::dense{.units = 6, .each_place = true}); });
  CHECK(two.wrong({1, 3, 4}).what == shapes_of_attention);
  CHECK(two.wrong({1, 3, 4}).first == edl::shape{1, 3, 4});
  CHECK(two.wrong({1, 3, 4}).second == edl::shape{1, 3, 6});
  CHECK(two.wrong({1, 3, 6}).none());
  // It does not know padding.
  auto const inner = nn::graph([](auto x) { return nn::cross_attention(x, x); });
  auto const masked = nn::masked(nn::padding_mask{}, nn::embedding{.vocabulary = 5, .width = 4}, inner);
  CHECK(nn::find_misfit(masked, {1, 1, 3}, true).why == edl::fit::sees_padding);
}

}  // namespace cross_attention_test
