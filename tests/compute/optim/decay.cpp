// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/decay.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/optimizers.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/core/error.hpp"

namespace decay_test {

namespace {

// 100 + 10 + 7 + 7 + 36 + 6 = 166 trained, and 7 carried.
edl::parameter_layout layout() {
  return {.variables = {{"dense/kernel", {10, 10}, 0},
                        {"dense/bias", {10}, 100},
                        {"layer_norm/gamma", {7}, 110},
                        {"layer_norm/beta", {7}, 117},
                        {"gru/kernel", {6, 6}, 124},
                        {"gru/bias", {2, 3}, 160},
                        {"batch_norm/moving_mean", {7}, 166}},
          .parameters = 166,
          .state = 7};
}

/// Weights after steps of a rule, each in ranges that end there.
struct run {
  std::vector<float> weights = check::normal<float>(166, 1, 0);
  std::vector<std::vector<float>> slots;

  run(edl::update_rule const& rule, std::vector<std::size_t> const& ends, float gradient_scale = 1) {
    for (std::size_t s = 0; s < rule.slots().size(); ++s) slots.emplace_back(166, rule.initial(s));
    for (std::uint64_t step = 0; step < 7; ++step) {
      auto g = check::normal<float>(166, 2, step);
      for (float& x : g) x *= gradient_scale;
      std::size_t first = 0;
      for (std::size_t const end : ends) {
        std::vector<std::span<float>> parts;
        for (auto& s : slots) parts.push_back(std::span(s).subspan(first, end - first));
        rule.apply_at(first, std::span(weights).subspan(first, end - first),
                      edl::view<float>(g).subspan(first, end - first), parts, 0.03f, step);
        first = end;
      }
    }
  }
};

bool is_bias(std::size_t i) { return (i >= 100 && i < 124) || i >= 160; }

/// What is spared gets the bits of an optimiser without decay, all else those of one that decays everything.
template <class Optimizer>
void spares(Optimizer decays_all, Optimizer spares_some, Optimizer decays_none,
            bool (*spared)(std::size_t) = is_bias) {
  auto const make = [&](Optimizer const& o) { return edl::rule(o, edl::constant_rate{0.03f}, layout()); };
  auto const all = make(decays_all), some = make(spares_some), none = make(decays_none);
  run const with(all, {166}), without(none, {166}), whole(some, {166});
  REQUIRE(!check::same_bits(with.weights, without.weights));
  for (std::size_t i = 0; i < 166; ++i) {
    CAPTURE(i);
    REQUIRE(whole.weights[i] == (spared(i) ? without : with).weights[i]);
  }
  for (std::vector<std::size_t> const& ends : std::vector<std::vector<std::size_t>>{
           {16, 96, 112, 166}, {1, 100, 100, 101, 123, 124, 125, 159, 160, 161, 166}, {105, 162, 166}}) {
    run const cut(some, ends);
    CHECK(check::same_bits(cut.weights, whole.weights));
    for (std::size_t s = 0; s < whole.slots.size(); ++s)
      CHECK(check::same_bits(cut.slots[s], whole.slots[s]));
  }
}

}  // namespace

TEST_CASE("biases are trained variables of one dimension, and those that are called so") {
  edl::sgd const spares{.weight_decay = 0.5f, .decay_biases = false};
  CHECK(spared_from_decay(spares, layout()) == std::vector<edl::element_range>{{100, 124}, {160, 166}});
  CHECK(edl::spared_from_decay(spares, edl::parameter_layout{}).empty());
}

TEST_CASE("an optimiser may spare biases, with the same bits for any ranges") {
  spares<edl::sgd>({.weight_decay = 0.5f}, {.weight_decay = 0.5f, .decay_biases = false}, {});
  spares<edl::sgd>({.momentum = 0.9f, .weight_decay = 0.5f},
                   {.momentum = 0.9f, .weight_decay = 0.5f, .decay_biases = false}, {.momentum = 0.9f});
  spares<edl::adam>({.amsgrad = true, .weight_decay = 0.5f},
                    {.amsgrad = true, .weight_decay = 0.5f, .decay_biases = false}, {.amsgrad = true});
  spares<edl::adamw>({}, {.decay_biases = false}, {.weight_decay = 0});
  spares<edl::rmsprop>({.weight_decay = 0.5f}, {.weight_decay = 0.5f, .decay_biases = false}, {});
  spares<edl::lion>({.weight_decay = 0.5f}, {.weight_decay = 0.5f, .decay_biases = false}, {});
  spares<edl::adagrad>({.weight_decay = 0.5f}, {.weight_decay = 0.5f, .decay_biases = false}, {});
  spares<edl::lookahead<edl::adamw>>({.every = 3}, {.optimizer = {.decay_biases = false}, .every = 3},
                                     {.optimizer = {.weight_decay = 0}, .every = 3});
}

TEST_CASE("an optimiser may spare what names say, beside biases or not, with the same bits for any ranges") {
  auto const norms = [](std::size_t i) { return i >= 110 && i < 124; };
  spares<edl::sgd>({.weight_decay = 0.5f},
                   {.weight_decay = 0.5f, .exclude_from_weight_decay = "*/gamma,*/beta"}, {}, norms);
  auto const kernel = [](std::size_t i) { return i < 100; };
  spares<edl::sgd>({.momentum = 0.9f, .weight_decay = 0.5f},
                   {.momentum = 0.9f, .weight_decay = 0.5f, .exclude_from_weight_decay = "dense/kernel"},
                   {.momentum = 0.9f}, kernel);
  auto const gru_and_biases = [](std::size_t i) { return i >= 100; };
  constexpr std::string_view gru = "gru/kernel";
  spares<edl::adam>({.weight_decay = 0.5f},
                    {.weight_decay = 0.5f, .decay_biases = false, .exclude_from_weight_decay = gru}, {},
                    gru_and_biases);
  spares<edl::adamw>({}, {.exclude_from_weight_decay = "*/gamma,*/beta"}, {.weight_decay = 0}, norms);
  spares<edl::rmsprop>({.weight_decay = 0.5f},
                       {.weight_decay = 0.5f, .exclude_from_weight_decay = "dense/k*"}, {}, kernel);
  spares<edl::lion>({.weight_decay = 0.5f}, {.weight_decay = 0.5f, .exclude_from_weight_decay = "dense/k*"},
                    {}, kernel);
  spares<edl::adagrad>({.weight_decay = 0.5f},
                       {.weight_decay = 0.5f, .exclude_from_weight_decay = "dense/k*"}, {}, kernel);
  spares<edl::lookahead<edl::adamw>>({.every = 3},
                                     {.optimizer = {.exclude_from_weight_decay = "layer_norm*"}, .every = 3},
                                     {.optimizer = {.weight_decay = 0}, .every = 3}, norms);
}

TEST_CASE("a name that is excluded from decay is one of a variable or table that is trained") {
  edl::parameter_layout of = layout();
  of.tables = {{"users", 3}};
  auto const check = [&](std::string_view names) {
    edl::rule(edl::lookahead<edl::adamw>{.optimizer = {.exclude_from_weight_decay = names}},
              edl::constant_rate{0.1f}, of)
        .check(of);
  };
  CHECK_NOTHROW(check(""));
  CHECK_NOTHROW(check("*/gamma,users"));
  CHECK_THROWS_WITH_AS(
      check("users,dense/kernal"),
      "exclude_from_weight_decay of the model's optimizer: 'dense/kernal' matches no variable or "
      "table that is trained; did you mean dense/kernel?",
      edl::error);
  CHECK_THROWS_AS(check("batch_norm/moving_mean"), edl::error);  // it is carried, and never decays
}

TEST_CASE("a table that is excluded has a rule without decay, others have the rule itself") {
  edl::parameter_layout of = layout();
  of.tables = {{"users", 3}, {"items", 3}};
  edl::sgd const o{.weight_decay = 0.5f, .exclude_from_weight_decay = "items"};
  edl::rule const rule(o, edl::constant_rate{0.5f}, of);
  edl::rated_rule const rated(rule, {});
  edl::moving_average const averaged(rated, 0.5);
  CHECK(&averaged.of_table(0) == &rule);
  std::vector<float> row(3, 4.0f);
  averaged.of_table(1).apply(row, std::vector<float>(3, 0.0f), {}, 0.5f, 0);
  CHECK(row == std::vector<float>(3, 4.0f));
  averaged.of_table(0).apply(row, std::vector<float>(3, 0.0f), {}, 0.5f, 0);
  CHECK(row == std::vector<float>(3, 3.0f));
  edl::rule const no_decay(edl::sgd{.exclude_from_weight_decay = "items"}, edl::constant_rate{0.5f}, of);
  CHECK(&no_decay.of_table(1) == &no_decay);
}

TEST_CASE("without a gradient a bias stays, and a kernel shrinks") {
  edl::rule const rule(edl::sgd{.weight_decay = 0.5f, .decay_biases = false}, edl::constant_rate{0.03f},
                       layout());
  run const still(rule, {166}, 0);
  auto const start = check::normal<float>(166, 1, 0);
  CHECK(still.weights[100] == start[100]);
  CHECK(still.weights[165] == start[165]);
  CHECK(std::abs(still.weights[99]) < std::abs(start[99]));
}

TEST_CASE("what has no decay has none to spare biases from") {
  static_assert(!edl::spares_biases(edl::sgd{.decay_biases = false}));
  static_assert(!edl::spares_biases(edl::adamw{}));
  static_assert(edl::spares_biases(edl::adamw{.decay_biases = false}));
  static_assert(edl::spares_biases(edl::lookahead<edl::adamw>{.optimizer = {.decay_biases = false}}));
  static_assert(edl::without_decay(edl::lookahead<edl::adamw>{}).optimizer.weight_decay == 0);
  struct own {
    float learning_rate = 1;
  };
  CHECK(!edl::spares_biases(own{}));
  CHECK(edl::without_decay(own{2}).learning_rate == 2);
}

}  // namespace decay_test
