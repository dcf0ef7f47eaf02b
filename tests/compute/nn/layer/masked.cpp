// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/nn/layer/masked.hpp"

#include <string>
#include <vector>

#include "compute/nn/harness.hpp"
#include "edl/compute/nn/layers.hpp"
#include "edl/compute/nn/model.hpp"
#include "edl/core/error.hpp"

namespace masked_test {

namespace nn = edl::nn;

namespace {

using vector = std::vector<double>;

constexpr int width = 4;
constexpr nn::embedding rows{.vocabulary = 7, .width = width};

/// Samples as words: a dot is padding, and a digit an id from 1 to 6.
using words = std::vector<std::string>;

words const ragged{"12345612", "321", "6", ""};
words const holes{"1.2.34..", "..321...", ".......6", "........"};

template <class L>
auto on(L const& l, words const& samples, int places) {
  lone_layer<L> h{.l = l, .in = {1, 1, places}, .batch = int(samples.size())};
  std::ranges::fill(h.x, 0.0);
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (std::size_t i = 0; i < samples[s].size(); ++i)
      if (samples[s][i] != '.') h.x[s * std::size_t(places) + i] = samples[s][i] - '0';
  return h;
}

/// What comes out at the places that count, or all of it where one place is left; and likewise in `dy`.
template <class H, class Visit>
void each_result(H const& h, Visit&& visit) {
  auto const c = std::size_t(h.out.channels), places = std::size_t(h.out.width);
  for (std::size_t s = 0; s < std::size_t(int(h.batch)); ++s)
    for (std::size_t i = 0; i < places; ++i) {
      bool const counts = places == 1 || h.x[s * std::size_t(h.in.channels) + i] != 0;
      for (std::size_t k = 0; k < c; ++k) visit((s * places + i) * c + k, counts);
    }
}

template <class H>
vector results(H const& h) {
  vector all;
  each_result(h, [&](std::size_t i, bool counts) {
    if (counts) all.push_back(h.y[i]);
  });
  return all;
}

/// Both passes; the gradients come from the places that count, each the same whatever stands around it.
template <class H>
void run(H& h) {
  std::size_t next = 0;
  auto const slopes = numbers<double>(h.dy.size(), 5);
  each_result(h, [&](std::size_t i, bool counts) { h.dy[i] = counts ? slopes[next++] : 0; });
  h.forward();
  h.backward(false);
}

words without_holes(words of) {
  for (std::string& each : of) std::erase(each, '.');
  return of;
}

/// A layer in a mask: what padding must not change, and the gradients.
template <class... L>
void passes_padding_over(L const&... layers) {
  auto const net = nn::masked(rows, layers...);
  REQUIRE(nn::find_misfit(nn::sequential(net), {1, 1, 8}, true).why == edl::fit::fits);
  for (words const& samples : {ragged, holes}) {
    auto at_8 = on(net, samples, 8), at_32 = on(net, samples, 32), bare = on(net, without_holes(samples), 8);
    run(at_8), run(at_32), run(bare);
    CHECK(greatest_difference(results(at_8), results(at_32)) < 1e-13);
    CHECK(greatest_difference(results(at_8), results(bare)) < 1e-13);
    CHECK(greatest_difference(at_8.gradients, at_32.gradients) < 1e-13);
    CHECK(greatest_difference(at_8.gradients, bare.gradients) < 1e-13);
    // The row of the padding's id has no part in anything.
    for (std::size_t k = 0; k < std::size_t(width); ++k) CHECK(at_8.gradients[k] == 0);
    for (std::size_t k = 0; k < std::size_t(width); ++k) at_8.parameters[k] += 1;
    auto const before = results(at_8);
    at_8.forward();
    CHECK(results(at_8) == before);

    auto h = on(net, samples, 8);
    h.value();
    h.backward();
    auto const gradients = h.gradients;
    CHECK(h.error(h.parameters, gradients) < 1e-7);
    for (double const d : h.dx) CHECK(d == 0);  // ids have no gradient
  }
}

constexpr auto in = nn::inputs(nn::input<"moments">(nn::image{.width = 6, .channels = 3}),
                               nn::input<"length">(nn::length{.most = 6}));

}  // namespace

TEST_CASE("attention passes padding over") {
  passes_padding_over(nn::attention{});
  passes_padding_over(nn::attention{.heads = 2, .causal = true});
  passes_padding_over(nn::sequential(nn::layer_norm{}, nn::attention{.heads = 2, .use_bias = false}),
                      nn::residual(nn::attention{}));
}

TEST_CASE("attention that turns its queries knows how far places are apart, padding included") {
  auto const net = nn::masked(rows, nn::attention{.heads = 2, .causal = true, .rotary = true});
  words const behind{"...12345", ".....321"}, before{"12345", "321"};
  auto a = on(net, behind, 8), b = on(net, before, 8), c = on(net, before, 32);
  run(a), run(b), run(c);
  CHECK(greatest_difference(results(a), results(b)) < 1e-13);
  CHECK(greatest_difference(results(b), results(c)) < 1e-13);
  CHECK(greatest_difference(a.gradients, b.gradients) < 1e-13);
  auto apart = on(net, {"1..2", "3"}, 8), beside = on(net, {"12", "3"}, 8);
  run(apart), run(beside);
  CHECK(greatest_difference(results(apart), results(beside)) > 1e-6);
  CHECK(apart.error(apart.parameters, (apart.value(), apart.backward(), vector(apart.gradients))) < 1e-7);
}

TEST_CASE("what drops out of attention does not depend on the padding") {
  auto const net = nn::masked(rows, nn::attention{.heads = 2, .dropout = 0.4f});
  auto at_8 = on(net, ragged, 8), at_32 = on(net, ragged, 32);
  run(at_8), run(at_32);
  CHECK(greatest_difference(results(at_8), results(at_32)) < 1e-13);
  CHECK(greatest_difference(at_8.gradients, at_32.gradients) < 1e-13);
  auto const gradients = at_8.gradients;
  CHECK(at_8.error(at_8.parameters, gradients) < 1e-7);
}

TEST_CASE("recurrent layers pass padding over") {
  for (bool const last : {false, true})
    for (bool const reverse : {false, true}) {
      CAPTURE(last);
      CAPTURE(reverse);
      passes_padding_over(nn::lstm{.units = 3, .reverse = reverse, .last = last});
      passes_padding_over(nn::gru{.units = 3, .reverse = reverse, .last = last});
    }
  passes_padding_over(nn::bidirectional(nn::lstm{.units = 3}), nn::bidirectional(nn::gru{.units = 2}));
  passes_padding_over(nn::bidirectional(nn::gru{.units = 2, .last = true}), nn::dense{.units = 2});
}

TEST_CASE("global pools pass padding over") {
  passes_padding_over(nn::global_average_pool{});
  passes_padding_over(nn::dense{.units = 5, .each_place = true}, nn::tanh{}, nn::global_max_pool{},
                      nn::dense{.units = 2});
  passes_padding_over(
      nn::concat(nn::global_average_pool{}, nn::global_max_pool{}, nn::lstm{.units = 2, .last = true}),
      nn::dense{.units = 2});
}

TEST_CASE("the mean and the greatest are of the places that count, and of none they are zeros") {
  auto mean = on(nn::masked(rows, nn::global_average_pool{}), {"1.3", ""}, 4);
  mean.forward();
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(mean.y[k] == doctest::Approx((mean.parameters[4 + k] + mean.parameters[12 + k]) / 2));
    CHECK(mean.y[4 + k] == 0);
  }
  auto most = on(nn::masked(rows, nn::global_max_pool{}), {"1.3", ""}, 4);
  for (double& each : most.parameters) each -= 2;  // all below the zeros of padding
  most.forward();
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(most.y[k] == std::max(most.parameters[4 + k], most.parameters[12 + k]));
    CHECK(most.y[4 + k] == 0);
  }
}

TEST_CASE("where every place counts, a mask changes no bit") {
  constexpr auto layers = nn::sequential(nn::attention{.heads = 2, .rotary = true},
                                         nn::bidirectional(nn::lstm{.units = 5}), nn::gru{.units = 4});
  words const full{"12345612", "32165432", "66666666"};
  auto with = on(nn::masked(rows, layers), full, 8);
  auto without = on(nn::sequential(rows, layers), full, 8);
  run(with), run(without);
  CHECK(with.y == without.y);
  CHECK(with.gradients == without.gradients);
}

TEST_CASE("another id may be padding") {
  constexpr auto pool = nn::global_average_pool{};
  auto zero = on(nn::masked(rows, pool), {"12..", "3"}, 4);
  auto six = on(nn::masked(nn::padding_mask{.id = 6}, rows, pool), {"1266", "3666"}, 4);
  zero.forward(), six.forward();
  CHECK(zero.y == six.y);
}

TEST_CASE("the number of places stands in an input of its own, and other inputs have exact gradients") {
  constexpr auto net =
      nn::sequential(nn::masked(in.mask<"length">(),
                                in.from<"moments">(nn::bidirectional(nn::gru{.units = 2}), nn::attention{}),
                                nn::global_average_pool{}),
                     nn::dense{.units = 2});
  static_assert(nn::find_misfit(net, in.input()).why == edl::fit::fits);
  lone_layer<std::remove_cv_t<decltype(net)>> h{.l = net, .in = in.input(), .batch = 4};
  double const lengths[] = {4, 6, 0, 1};
  for (std::size_t s = 0; s < 4; ++s) h.x[s * 19 + 18] = lengths[s];
  h.value();
  h.backward();
  auto const gradients = h.gradients, dx = h.dx;
  CHECK(h.error(h.parameters, gradients) < 1e-7);
  for (std::size_t s = 0; s < 4; ++s)
    for (std::size_t i = 0; i < 18; ++i) {
      double& at = h.x[s * 19 + i];
      double const was = at;
      at = was + 1e-5;
      double const above = h.value();
      at = was - 1e-5;
      double const below = h.value();
      at = was;
      CHECK(std::abs(dx[s * 19 + i] - (above - below) / 2e-5) < 1e-7);
      if (double(i / 3) >= lengths[s]) CHECK(dx[s * 19 + i] == 0);
    }
  std::vector<int> seen;
  nn::for_each_ids(net, in.input(), {}, [&](nn::id_range of, int vocabulary, bool) {
    seen.push_back(of.first);
    seen.push_back(vocabulary);
    CHECK(of.length);
  });
  CHECK(seen == std::vector{18, 7});
}

TEST_CASE("no id is rounded where results are kept as bfloat16") {
  constexpr auto inputs =
      nn::inputs(nn::input<"number">(nn::features{.count = 1}), nn::input<"words">(nn::ids{.count = 5}));
  constexpr auto net =
      nn::sequential(nn::concat(inputs.from<"words">(nn::masked(nn::embedding{.vocabulary = 1000, .width = 2},
                                                                nn::lstm{.units = 2, .last = true})),
                                inputs.from<"number">()),
                     nn::dense{.units = 2});
  auto const course = [&](nn::storage keep) {
    lone_layer<std::remove_cv_t<decltype(net)>> h{.l = net, .in = inputs.input(), .batch = {2, keep}};
    h.x = {0.5, 257, 999, 513, 0, 0, /* the second sample */ 1, 771, 0, 0, 0, 0};
    h.forward();
    h.backward(false);
    return h;
  };
  auto const whole = course(nn::storage::float32), half = course(nn::storage::bfloat16);
  CHECK(half.y == whole.y);
  for (std::size_t id = 0; id < 1000; ++id) {
    bool const there = id == 257 || id == 999 || id == 513 || id == 771;
    CAPTURE(id);
    CHECK((whole.gradients[2 * id] != 0) == there);
    CHECK((half.gradients[2 * id] != 0) == there);
  }
}

TEST_CASE("a layer that would see padding is no part of a mask, unless one place is left") {
  using enum edl::fit;
  auto const why = [](auto const&... layers) {
    return nn::find_misfit(nn::sequential(nn::masked(rows, layers...)), {1, 1, 8}, true).why;
  };
  CHECK(why(nn::flatten{}) == sees_padding);
  CHECK(why(nn::dense{.units = 2}) == sees_padding);
  CHECK(why(nn::conv2d{.filters = 2, .kernel = {1, 3}, .padding = nn::padding::same}) == sees_padding);
  CHECK(why(nn::batch_norm{}) == sees_padding);
  CHECK(why(nn::average_pool{.window = {1, 2}}) == sees_padding);
  CHECK(why(nn::residual(nn::sequential(nn::gelu{}, nn::batch_norm{}))) == sees_padding);
  CHECK(why(nn::dense{.units = 2, .each_place = true}, nn::dropout{}, nn::positions{}, nn::relu{}) == fits);
  CHECK(why(nn::global_max_pool{}, nn::batch_norm{}, nn::dense{.units = 2}) == fits);
  CHECK(nn::find_misfit(nn::sequential(nn::masked(rows, nn::attention{}), nn::flatten{}), {1, 1, 8}, true)
            .why == fits);
  CHECK(
      nn::find_misfit(nn::sequential(nn::masked(nn::dense{.units = 2, .each_place = true})), {1, 1, 8}).why ==
      takes_only_ids);
  CHECK(nn::find_misfit(nn::sequential(nn::dense{.units = 2}, nn::masked(in.mask<"length">(), nn::relu{})),
                        in.input())
            .why == not_at_the_start);
  auto const found =
      nn::find_misfit(nn::sequential(nn::masked(rows, nn::attention{}, nn::flatten{})), {1, 1, 8}, true);
  REQUIRE(found.depth == 2);
  CHECK(found.path[1] == 2);
}

TEST_CASE("a network with a mask is of the processor, and its variables lie under the mask's name") {
  static constexpr auto net =
      nn::sequential(nn::ids{.count = 8}, nn::masked(rows, nn::global_max_pool{}), nn::dense{.units = 2});
  CHECK_FALSE(nn::is_portable(net.body, net.input));
  auto const layout = edl::model<net, edl::cpu>::layout();
  CHECK(layout.variables.front().name == "masked/embedding/embeddings");
}

}  // namespace masked_test
