// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/rated_rule.hpp"

#include <doctest/doctest.h>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/moving_average.hpp"
#include "edl/compute/optim/optimizers.hpp"

namespace rated_rule_test {

namespace {

constexpr std::size_t size = 3000;
std::vector<edl::rated_range> const rated{{{100, 200}, 0.25f}, {{2040, 2060}, 4}};

/// Weights after steps at rates that change, in ranges that end there.
std::vector<float> trained(edl::update_rule const& rule, std::vector<std::size_t> const& ends,
                           float factor = 1) {
  auto weights = check::normal<float>(size, 1, 0);
  std::vector<std::vector<float>> slots;
  for (std::size_t s = 0; s < rule.slots().size(); ++s) slots.emplace_back(size, rule.initial(s));
  for (std::uint64_t step = 0; step < 7; ++step) {
    auto const g = check::normal<float>(size, 2, step);
    std::size_t first = 0;
    for (std::size_t const end : ends) {
      std::vector<std::span<float>> parts;
      for (auto& s : slots) parts.push_back(std::span(s).subspan(first, end - first));
      rule.apply_at(first, std::span(weights).subspan(first, end - first),
                    edl::view<float>(g).subspan(first, end - first), parts, factor * rule.learning_rate(step),
                    step);
      first = end;
    }
  }
  return weights;
}

/// A part has the bits of a model that has that rate as a whole.
template <class Optimizer>
void parts_have_their_rates(Optimizer const& o) {
  edl::rule const plain(
      o, edl::exponential_decay{.rate = 0.05f, .factor = 0.5f, .steps = 3},
      {.variables = {{"kernel", {15, 10}, 0}, {"bias", {20}, 150}, {"more", {2830, 1}, 170}},
       .parameters = size});
  edl::rated_rule const rule(plain, rated);
  CHECK(rule.slots() == plain.slots());
  CHECK(rule.learning_rate(2) == plain.learning_rate(2));
  auto const all = trained(plain, {size}), slow = trained(plain, {size}, 0.25f),
             fast = trained(plain, {size}, 4), some = trained(rule, {size});
  REQUIRE(all[150] != slow[150]);
  REQUIRE(all[2050] != fast[2050]);
  for (std::size_t i = 0; i < size; ++i) {
    CAPTURE(i);
    REQUIRE(some[i] == (i >= 100 && i < 200 ? slow : i >= 2040 && i < 2060 ? fast : all)[i]);
  }
  CHECK(check::same_bits(trained(rule, {99, 101, 199, 201, 2041, 2059, size}), some));
  CHECK(check::same_bits(trained(edl::moving_average(rule, 0.9), {size}), some));
  CHECK(check::same_bits(trained(edl::rated_rule(plain, {}), {size}), all));
}

}  // namespace

TEST_CASE("parts are trained at their own rates, whatever the optimiser and the ranges") {
  parts_have_their_rates(edl::sgd{.momentum = 0.9f, .weight_decay = 0.1f});
  parts_have_their_rates(edl::adam{.amsgrad = true});
  parts_have_their_rates(edl::adamw{.decay_biases = false});
  parts_have_their_rates(edl::rmsprop{.momentum = 0.9f});
  parts_have_their_rates(edl::lion{});
  parts_have_their_rates(edl::adagrad{});
  parts_have_their_rates(edl::lookahead<edl::sgd>{.every = 3});
}

TEST_CASE("what is trained in some steps alone keeps the bits that it has then, and the others theirs") {
  edl::rule const plain(edl::adam{.weight_decay = 0.1f});
  edl::rated_rule const rule(plain, {{{100, 200}, 1, 3}});
  auto const few = [&](std::uint64_t steps) {
    return trained(edl::rated_rule(plain, {{{0, size}, 1, steps}}), {size});
  };
  auto const all = few(0), three = few(3), some = trained(rule, {150, size});
  REQUIRE(three[150] != all[150]);
  REQUIRE(three[150] != few(2)[150]);
  for (std::size_t i = 0; i < size; ++i) REQUIRE(some[i] == (i >= 100 && i < 200 ? three : all)[i]);
}

TEST_CASE("a span that lies nowhere has the rate itself") {
  edl::rule const plain(edl::sgd{});
  edl::rated_rule const rule(plain, {{{0, 10}, 2}});
  std::vector<float> weights(4, 1), gradients(4, 1);
  rule.apply(weights, gradients, {}, 0.5f, 0);
  CHECK(weights == std::vector<float>(4, 0.5f));
}

}  // namespace rated_rule_test
