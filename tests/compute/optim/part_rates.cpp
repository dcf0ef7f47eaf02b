// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/part_rates.hpp"

#include <doctest/doctest.h>

#include "compute/optim/check.hpp"
#include "edl/compute/optim/averages.hpp"
#include "edl/compute/optim/optimizers.hpp"
#include "edl/core/error.hpp"

namespace part_rates_test {

using edl::element_range, edl::rated_range, edl::rates_of_parts;
using ranges = std::vector<rated_range>;

namespace {

edl::parameter_layout network() {
  return {.variables = {{"conv2d/kernel", {9, 4}, 0},
                        {"conv2d/bias", {4}, 36},
                        {"dense/kernel", {10}, 40},
                        {"dense/bias", {5}, 50},
                        {"batch_norm/mean", {5}, 55}},
          .parameters = 55,
          .state = 5,
          .tables = {{"words", 3}, {"pages", 2}}};
}

ranges by(edl::rates const& model, std::string const& flag = "") {
  return rates_of_parts(network(), model, flag).elements;
}

}  // namespace

TEST_CASE("a flag says names and factors") {
  std::string const kept = "conv2d*=0.1,dense/[kb]*=2e1";
  auto const read = edl::read_rates(kept);
  REQUIRE(read.size() == 2);
  CHECK(read[0].names == "conv2d*");
  CHECK(read[0].factor == 0.1f);
  CHECK(read[1].names == "dense/[kb]*");
  CHECK(read[1].factor == 20);
  CHECK(edl::read_rates("").empty());
  for (char const* wrong : {"conv2d*", "=2", "conv2d*=", "conv2d*=0", "conv2d*=-1", "conv2d*=nan",
                            "conv2d*=inf", "conv2d*=1x", "conv2d*=1,", ",conv2d*=1", "conv2d*=1e99"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(edl::read_rates(wrong), edl::usage_error);
  }
  CHECK_THROWS_WITH_AS(edl::read_rates("a=1,conv2d*=0"),
                       doctest::Contains("--rates=a=1,conv2d*=0: 'conv2d*=0'"), edl::usage_error);
}

TEST_CASE("parts are ranges in order; neighbours of one factor are one, and a factor of 1 is none") {
  CHECK(by({}).empty());
  CHECK(by({{"conv2d*", 0.1f}}) == ranges{{{0, 40}, 0.1f}});
  CHECK(by({{"dense/bias,conv2d/bias", 2}}) == ranges{{{36, 40}, 2}, {{50, 55}, 2}});
  CHECK(by({{"conv2d*", 0.1f}, {"dense*", 0.1f}}) == ranges{{{0, 55}, 0.1f}});
  CHECK(by({{"conv2d/*", 0.1f}, {"dense*", 3}}) == ranges{{{0, 40}, 0.1f}, {{40, 55}, 3}});
  CHECK(by({{"*", 1}}).empty());
}

TEST_CASE("the last match counts, and what the user says comes behind the model") {
  CHECK(by({{"*", 0.1f}, {"dense*", 1}}) == ranges{{{0, 40}, 0.1f}});
  CHECK(by({{"*", 0.1f}}, "conv2d/kernel=3,dense*=1") == ranges{{{0, 36}, 3}, {{36, 40}, 0.1f}});
  CHECK(by({}, "dense/kernel=0.5") == ranges{{{40, 50}, 0.5f}});
}

TEST_CASE("tables have factors by their names") {
  auto const some = rates_of_parts(network(), {}, "words=0.5");
  CHECK(some.elements.empty());
  CHECK(some.of_table(0) == 0.5f);
  CHECK(some.of_table(1) == 1);
  CHECK(rates_of_parts(network(), {}, "*=3").of_table(1) == 3);
  CHECK(edl::part_rates{}.of_table(1) == 1);
}

TEST_CASE("a pattern without a match is an error that names what is near, and who says it") {
  auto const refused = [](edl::rates const& model, std::string const& flag, char const* why) {
    CHECK_THROWS_WITH_AS(rates_of_parts(network(), model, flag), why, edl::error);
  };
  refused({{"dense/kernl", 2}}, "",
          "the model's rates: 'dense/kernl' matches no variable or table that is trained; did you mean "
          "dense/kernel?");
  refused(
      {}, "batch_norm/mean=2,dense*=1",
      "--rates=batch_norm/mean=2,dense*=1: 'batch_norm/mean' matches no variable or table that is trained; "
      "these are conv2d/kernel, conv2d/bias, dense/kernel, dense/bias, words, pages");
  refused({{"dense*", 0}}, "",
          "the model's rates: expected at most 16 parts, with names and factors above 0");
}

TEST_CASE("a range is cut where rates change, and nothing of it is left out") {
  ranges const rated{{{10, 20}, 2}, {{20, 30}, 3}, {{40, 50}, 4}};
  using piece = std::pair<element_range, float>;
  auto const pieces = [&](element_range all) {
    std::vector<piece> out;
    edl::for_each_rate(rated, all, 0, [&](element_range r, float factor) { out.emplace_back(r, factor); });
    return out;
  };
  CHECK(pieces({0, 60}) ==
        std::vector<piece>{
            {{0, 10}, 1}, {{10, 20}, 2}, {{20, 30}, 3}, {{30, 40}, 1}, {{40, 50}, 4}, {{50, 60}, 1}});
  CHECK(pieces({12, 18}) == std::vector<piece>{{{12, 18}, 2}});
  CHECK(pieces({20, 41}) == std::vector<piece>{{{20, 30}, 3}, {{30, 40}, 1}, {{40, 41}, 4}});
  CHECK(pieces({0, 10}) == std::vector<piece>{{{0, 10}, 1}});
  CHECK(pieces({50, 51}) == std::vector<piece>{{{50, 51}, 1}});
  CHECK(pieces({7, 7}).empty());
}

TEST_CASE("what is trained in the first steps alone is left out from then on") {
  auto const some = rates_of_parts(network(), {{"*bias", 2, 7}, {"dense/*", 3}}, "conv2d/bias=0.5").elements;
  CHECK(some == ranges{{{36, 40}, 0.5f, 7}, {{40, 50}, 3}, {{50, 55}, 3, 7}});
  std::vector<element_range> out;
  auto const pieces = [&](std::uint64_t step) {
    out.clear();
    edl::for_each_rate(some, {0, 55}, step, [&](element_range r, float) { out.push_back(r); });
    return out;
  };
  CHECK(pieces(6) == std::vector<element_range>{{0, 36}, {36, 40}, {40, 50}, {50, 55}});
  CHECK(pieces(7) == std::vector<element_range>{{0, 36}, {40, 50}});
  CHECK_THROWS_WITH_AS(
      rates_of_parts(network(), {{"words", 1, 7}}, ""),
      "the model's rates: 'words' matches no variable that is trained; these are conv2d/kernel, conv2d/bias, "
      "dense/kernel, dense/bias",
      edl::error);
}

}  // namespace part_rates_test

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
