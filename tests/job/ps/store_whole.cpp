// SPDX-License-Identifier: Apache-2.0
// Stores whose optimiser needs whole variables.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "edl/compute/optim/muon.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "job/ps/small_store.hpp"

namespace store_whole_test {

using namespace small_store;

namespace {

edl::parameter_layout with_borders(edl::parameter_layout layout) {
  edl::whole_variables const all(layout);
  layout.borders.assign(all.borders().begin(), all.borders().end());
  return layout;
}

// 200 + 20 + 60 + 3 trained, 3 carried.
edl::parameter_layout const layout = with_borders({{{"a/kernel", {10, 20}, 0},
                                                    {"a/bias", {20}, 200},
                                                    {"b/kernel", {20, 3}, 220},
                                                    {"b/bias", {3}, 280},
                                                    {"mean", {3}, 283}},
                                                   283,
                                                   3,
                                                   {{"words", 2}}});

float number(std::size_t i, std::uint64_t of) { return float(edl::mix(of, i) % 1000) / 500 - 1; }

/// What stores of so many servers hold after some steps: variables, then slots.
std::vector<float> trained(edl::update_rule const& rule, std::uint32_t servers, policy const& when,
                           double average) {
  std::vector<float> variables, slots;
  for (std::uint32_t part = 0; part < servers; ++part) {
    auto const own = edl::partition(layout.size(), servers, part, layout.borders);
    store s({.layout = layout,
             .elements = own,
             .tables = {{.width = 2}},
             .rule = rule,
             .when = when,
             .moving_average = average});
    s.configure([](std::size_t first, std::span<float> into) {
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = number(first + i, 7);
    });
    for (std::uint32_t t = 0; t < 8; ++t) {
      std::vector<float> gradients(s.parameters()), change(s.state(), 1);
      for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = number(own.first + i, 100 + t);
      edl::sparse::row_gradients const none;
      s.push(batch(t), s.version(), gradients, change, {&none, 1});
    }
    auto const full = s.full_snapshot();
    auto const now = values(s.current());
    variables.insert(variables.end(), now.begin(), now.end());
    if (part == 0) slots.resize(full.slot_names.size() * layout.parameters);
    for (std::size_t i = 0; i < full.slot_names.size(); ++i)
      std::copy_n(full.slots.values().begin() + std::ptrdiff_t(i * full.slot_stride), s.parameters(),
                  slots.begin() + std::ptrdiff_t(i * layout.parameters + own.first));
  }
  variables.insert(variables.end(), slots.begin(), slots.end());
  return variables;
}

template <class Optimizer>
void same_for_any_servers(Optimizer const& o) {
  edl::rule const rule(o, edl::constant_rate{0.01f}, layout);
  synchronous const pairs(2);
  for (policy const* when : std::vector<policy const*>{&at_once, &pairs})
    for (double const average : {0.0, 0.9}) {
      auto const one = trained(rule, 1, *when, average);
      REQUIRE(one[0] != number(0, 7));
      for (std::uint32_t const servers : {2u, 3u, 7u}) CHECK(trained(rule, servers, *when, average) == one);
    }
}

}  // namespace

TEST_CASE("optimisers of whole variables have the same bits for any number of servers") {
  same_for_any_servers(edl::lamb{.weight_decay = 0.1f, .decay_biases = false});
  same_for_any_servers(edl::muon{.weight_decay = 0.1f});
}

TEST_CASE("a variable whose parts have counted other minibatches is refused, and its weights are taken") {
  scratch const dir;
  edl::rule const whole(edl::lamb{.weight_decay = 0.1f}, edl::constant_rate{0.1f}, layout);
  edl::parameter_layout plain = layout;
  plain.tables.clear();
  // An optimiser of elements with the same slots, whose servers have cut the first variable.
  edl::rule const old(edl::adam{});
  store a({.layout = plain, .elements = {0, 144}, .rule = old, .when = at_once});
  store b({.layout = plain, .elements = {144, 286}, .rule = old, .when = at_once});
  a.push(batch(0), 0, std::vector<float>(144, 1), {});
  b.push(batch(1), 0, std::vector<float>(139, 1), std::vector<float>(3, 1));
  auto const path = save(dir, plain, 1, {a.full_snapshot(), b.full_snapshot()});
  store s({.layout = plain, .elements = {0, 286}, .rule = whole, .when = at_once});
  CHECK_THROWS_WITH_AS(s.restore(path), doctest::Contains("--checkpoint_dir_for_init"), edl::error);
  CHECK(s.version() == 0);
  CHECK(s.segments().size() == 1);
  s.restore(path, history::forgotten);
  CHECK(s.current()[0] != 0);
  CHECK(s.push(batch(0), 1, std::vector<float>(283, 1), std::vector<float>(3, 1)).version == 2);
  store elements({.layout = plain, .elements = {0, 286}, .rule = old, .when = at_once});
  elements.restore(path);
  CHECK(elements.segments().size() == 2);
}

TEST_CASE("rows of tables are stepped element by element") {
  edl::rule const rule(edl::lamb{}, edl::constant_rate{0.25f}, layout);
  store s({.layout = layout,
           .elements = {0, 286},
           .slots = {0, 4096},
           .tables = {{.width = 2, .initial = edl::nn::constant{100}}},
           .rule = rule,
           .when = at_once});
  std::vector<std::uint64_t> const ids{5, 6};
  std::vector<float> const slopes{1, -1, 2, 0}, zeros(286);
  edl::sparse::row_gradients const rows{ids, slopes};
  s.push(batch(0), 0, std::span(zeros).first(283), std::span(zeros).last(3), {&rows, 1});
  std::vector<float> now(4);
  s.rows().pull(0, ids, now);
  CHECK(now[0] == doctest::Approx(99.75));
  CHECK(now[1] == doctest::Approx(100.25));
  CHECK(now[2] == doctest::Approx(99.75));
  CHECK(now[3] == 100);
}

}  // namespace store_whole_test
