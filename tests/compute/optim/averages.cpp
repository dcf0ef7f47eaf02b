// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/averages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "check.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace lookahead_test {

using edl::lookahead;
using edl::sgd;

TEST_CASE("lookahead: every few steps the weights go back to slow ones") {
  lookahead<sgd> const o{.optimizer = {}, .every = 2, .keep = 0.25f};
  check::memory<double, lookahead<sgd>> m(o, {8});
  std::vector<double> const one{1};
  m.apply(one, 2);  // 6
  CHECK(m.weights[0] == 6);
  CHECK(m.slots[0][0] == 8);
  m.apply(one, 2);  // 4, and back to 0.25 · 8 + 0.75 · 4
  CHECK(m.weights[0] == 5);
  CHECK(m.slots[0][0] == 5);
  m.apply(one, 2);
  CHECK(m.weights[0] == 3);
  m.apply(one, 2);  // 1, and back to 0.25 · 5 + 0.75 · 1
  CHECK(m.weights[0] == 2);
}

TEST_CASE("lookahead: what is kept grows to the last step, which ends at the slow weights") {
  lookahead<sgd> const o{.optimizer = {}, .every = 5, .keep = 0.8f, .steps = 42};
  CHECK(o.kept_after(0) < 0);
  CHECK(o.kept_after(4) == doctest::Approx(0.8 * std::pow(5 / 42.0, 3)));
  CHECK(o.kept_after(39) == doctest::Approx(0.8 * std::pow(40 / 42.0, 3)));
  CHECK(o.kept_after(40) < 0);
  CHECK(o.kept_after(41) == 1);
  CHECK(o.kept_after(44) == 0.8f);
  CHECK(lookahead<sgd>{.optimizer = {}, .every = 1}.kept_after(0) == 0.5f);
}

TEST_CASE(
    "lookahead: cuts and restarts change no bit, and the other optimiser's slots and rate are its own") {
  lookahead<edl::adam> const o{.optimizer = {.learning_rate = 0.25f, .amsgrad = true}};
  check::same_however_cut(o);
  CHECK(o.learning_rate == 0.25f);
  REQUIRE(o.slots().size() == 4);
  CHECK(o.slots()[2].name == "v_max");
  CHECK(o.slots()[3].name == "slow");
}

}  // namespace lookahead_test

namespace moving_average_test {

namespace {

struct trained {
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;
};

/// Steps with the same gradients, whatever the rule.
template <class Seen>
trained train(edl::update_rule const& with, std::size_t size, int steps, Seen const& seen) {
  trained t{std::vector<float>(size), {}};
  for (std::size_t i = 0; i < with.slots().size(); ++i) t.slots.emplace_back(size, with.initial(i));
  std::vector<std::span<float>> const slots(t.slots.begin(), t.slots.end());
  for (std::size_t i = 0; i < size; ++i) t.weights[i] = 100 + float(i % 7);
  std::vector<float> gradients(size);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < size; ++i)
      gradients[i] = float(edl::mix(std::uint64_t(step), i) % 1000) / 1000 - 0.25f;
    with.apply(t.weights, gradients, slots, with.learning_rate(std::uint64_t(step)), std::uint64_t(step));
    seen(t);
  }
  return t;
}

}  // namespace

TEST_CASE("the average is the mean of the weights after each step, the older the lighter") {
  edl::rule const adam(edl::adam{.learning_rate = 0.01f});
  constexpr std::size_t size = 5000;  // more than one block, and not a multiple of one
  for (double const decay : {0.5, 0.9, 0.9999}) {
    CAPTURE(decay);
    edl::moving_average const rule(adam, decay);
    REQUIRE(rule.slots() == std::vector<std::string>{"m", "v", "average_less_weight"});
    std::vector<double> sum(size, 0);
    double weight = 0, worst = 0;
    auto const with = train(rule, size, 200, [&](trained const& t) {
      weight = decay * weight + 1;
      for (std::size_t i = 0; i < size; ++i) {
        sum[i] = decay * sum[i] + double(t.weights[i]);
        worst = std::max(worst, std::abs(sum[i] / weight - (double(t.weights[i]) + double(t.slots[2][i]))));
      }
    });
    CHECK(worst < 2e-5);  // of weights of 100, which a float has to 8e-6
    auto const without = train(adam, size, 200, [](trained const&) {});
    CHECK(with.weights == without.weights);
    CHECK(with.slots[0] == without.slots[0]);
  }
}

TEST_CASE("after the first step the average is the weights, and without a decay there is none") {
  edl::rule const adam(edl::adam{});
  edl::moving_average const rule(adam, 0.99);
  CHECK(rule.averages());
  CHECK(rule.kept_after(0) == 0);
  CHECK(rule.kept_after(1) == doctest::Approx(0.99 * 0.01 / (1 - 0.99 * 0.99)));
  CHECK(rule.kept_after(100'000) == 0.99);
  CHECK(rule.initial(2) == 0);
  CHECK(train(rule, 3, 1, [](trained const&) {}).slots[2] == std::vector<float>(3, 0));
  edl::moving_average const none(adam, 0);
  CHECK_FALSE(none.averages());
  CHECK(none.slots() == adam.slots());
  CHECK(train(none, 3, 9, [](trained const&) {}).weights == train(adam, 3, 9, [](trained const&) {}).weights);
  for (double const wrong : {1.0, -0.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(edl::moving_average(adam, wrong), edl::error);
}

TEST_CASE("a rule that spares biases its decay does so below an average, in any block") {
  constexpr std::size_t size = 5000, first = 300;
  edl::rule const spares(edl::adam{.weight_decay = 0.1f, .decay_biases = false}, edl::constant_rate{0.01f},
                         {.variables = {{"a/kernel", {25, 10}, 0},
                                        {"a/bias", {60}, 250},
                                        {"b/kernel", {2090, 1}, 310},
                                        {"b/bias", {200}, 2400},
                                        {"c/kernel", {2690, 1}, 2600},
                                        {"c/bias", {710}, 5290}},
                          .parameters = 6000});
  edl::moving_average const rule(spares, 0.9);
  auto const stepped = [&](edl::update_rule const& with) {
    std::vector<float> weights(size, 1), gradients(size, 0.5f);
    std::vector<std::vector<float>> slots(with.slots().size(), std::vector<float>(size, 0));
    std::vector<std::span<float>> const views(slots.begin(), slots.end());
    for (std::uint64_t step = 0; step < 3; ++step)
      with.apply_at(first, weights, gradients, views, 0.01f, step);
    return weights;
  };
  auto const weights = stepped(rule);
  CHECK(weights == stepped(spares));
  for (std::size_t const decayed : {10, 2099, 2300, 4989}) CHECK(weights[decayed] == weights[1000]);
  for (std::size_t const bias : {0, 9, 2100, 2299, 4990}) {
    CHECK(weights[bias] == weights[2200]);
    CHECK(weights[bias] > weights[1000]);
  }
}

}  // namespace moving_average_test
