// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/variables.hpp"

#include <doctest/doctest.h>

#include "job/ps/small_store.hpp"

namespace variables_test {

using namespace small_store;

namespace {

synchronous const pairs(2);
auto const layout = small_layout();

}  // namespace

TEST_CASE("a step changes its part: parameters by the rule, state by the change") {
  variables v({.layout = layout, .elements = {2, 6}, .rule = adding, .when = at_once});
  CHECK(v.parameters() == 2);
  CHECK(v.state() == 2);
  std::vector<float> const slopes{1, 2}, change{3, 4};
  v.step({3, 5}, slopes, change, 1, 0);
  CHECK(values(v.current()) == std::vector<float>{0, 2, 3, 0});
  v.step({2, 6}, slopes, change, 0.5f, 1);
  CHECK(values(v.current()) == std::vector<float>{0.5f, 3, 6, 4});
}

TEST_CASE("who holds a version keeps it") {
  variables v({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  auto const before = v.hold();
  auto const full = v.snapshot(0);
  v.step({0, 6}, ones, twos, 1, 0);
  CHECK(values(before.values()) == std::vector<float>(6, 0));
  CHECK(values(full.variables.variables()) == std::vector<float>(6, 0));
  CHECK(v.buffers() == 2);
}

TEST_CASE("a step of sums, and of what is accumulated, is one with the mean") {
  variables v({.layout = layout, .elements = {0, 6}, .rule = adding, .when = pairs});
  std::vector<float> sums{2, 4, 6, 8, 10, 12};
  v.step_sums({0, 6}, sums, 2, 0);
  CHECK(values(v.current()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  std::vector<float> const threes(4, 3);
  v.accumulate({0, 6}, ones, twos, true);
  v.accumulate({0, 6}, threes, twos, false);
  CHECK(values(v.current()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  v.step_accumulated({0, 6}, 2, 1, 1);
  CHECK(values(v.current()) == std::vector<float>{3, 4, 5, 6, 7, 8});
  v.accumulate({0, 6}, ones, twos, true);  // begins anew
  v.step_accumulated({0, 6}, 1, 1, 2);
  CHECK(v.current()[0] == 4);
}

TEST_CASE("contents take the place of variables and slots at once, as a copy brings them") {
  variables v({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  variables copy({.layout = layout, .elements = {0, 6}, .rule = momentum, .when = at_once});
  v.take(v.initial([](std::size_t first, std::span<float> into) { std::ranges::fill(into, first + 7.0f); }));
  CHECK(values(v.current()) == std::vector<float>(6, 7));
  v.step({0, 6}, ones, twos, 1, 0);
  auto const full = v.snapshot(1);
  auto all = values(full.variables.variables());
  all.insert(all.end(), full.slots.values().begin(), full.slots.values().end());
  REQUIRE(all.size() == copy.copy_size());
  copy.take(copy.copied(all));
  for (variables* const one : {&v, &copy}) one->step({0, 6}, ones, twos, 1, 1);
  CHECK(values(v.current()) == values(copy.current()));
}

}  // namespace variables_test
