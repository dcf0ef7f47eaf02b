// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/variables.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "job/ps/small_store.hpp"

namespace variables_test {

using namespace small_store;

namespace {

synchronous const pairs(2);
auto const layout = small_layout();

}  // namespace

TEST_CASE("who holds a version keeps it") {
  variables v({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  auto const before = v.hold();
  auto const full = v.snapshot(0);
  v.step({0, 6}, ones, twos, 1, 0);
  CHECK(values(before.values()) == std::vector<float>(6, 0));
  CHECK(values(full.variables.variables()) == std::vector<float>(6, 0));
  CHECK(v.buffers() == 2);
}

TEST_CASE("a bit that flips between two steps is found; steps of watched memory are the same bits") {
  edl::parameter_layout const large{{{"w", {10000}, 0}, {"mean", {100}, 10000}}, 10000, 100};
  store_options o{.layout = large, .elements = {0, 10100}, .rule = momentum, .when = at_once};
  variables plain(o);
  o.watches_memory = true;
  variables v(o);
  std::vector<float> slopes(10000), change(100, 0.5f);
  for (std::size_t i = 0; i < slopes.size(); ++i) slopes[i] = float(i % 97) - 48;
  auto const step = [&](variables& of, std::uint64_t made) {
    of.step({0, 5000}, slopes, change, 1, made);
    of.step({5000, 10100}, slopes, change, 1, made);
  };
  for (std::uint64_t made = 0; made < 1000; ++made) {
    auto const held = made % 7 == 0 ? v.hold() : buffer();
    step(v, made), step(plain, made);
  }
  CHECK(values(v.current()) == values(plain.current()));
  v.check_memory();
  auto const flip = [](float const& x, int bit) {
    const_cast<float&>(x) = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (1u << bit));
  };
  edl::view<float> const slots = v.snapshot(0).slots.values();
  for (std::size_t const at : {0, 4999, 9999})
    for (int bit = 0; bit < 32; ++bit)
      for (float const* const x : {&v.current()[at], &slots[at]}) {
        flip(*x, bit);
        CHECK_THROWS_AS(v.check_memory(), memory_fault);
        flip(*x, bit);
      }
  v.check_memory();
  flip(v.current()[10050], 30);
  v.step({0, 4096}, slopes, change, 1, 1000);  // of another block
  CHECK_THROWS_WITH_AS(v.step({5000, 10100}, slopes, change, 1, 1000),
                       "this machine's memory corrupts data: elements [8192, 10100) "
                       "have changed without a step",
                       memory_fault);
}

TEST_CASE("a bit that flips in accumulated gradients is found") {
  edl::parameter_layout const large{{{"w", {10000}, 0}}, 10000, 0};
  variables v(
      {.layout = large, .elements = {0, 10000}, .rule = momentum, .when = pairs, .watches_memory = true});
  std::vector<float> const slopes(10000, 2);
  for (std::uint64_t made = 0; made < 3; ++made) {
    v.accumulate({0, 10000}, slopes, {}, true);
    v.accumulate({0, 10000}, slopes, {}, false);
    v.step_accumulated({0, 10000}, 2, 1, made);
  }
  v.accumulate({0, 10000}, slopes, {}, true);
  const_cast<float&>(v.accumulated()[9000]) = 3;
  v.accumulate({0, 4096}, slopes, {}, false);  // of another block
  CHECK_THROWS_WITH_AS(v.accumulate({4096, 10000}, slopes, {}, false),
                       "this machine's memory corrupts data: sums of gradients of "
                       "elements [8192, 10000) have changed by themselves",
                       memory_fault);
  CHECK_THROWS_AS(v.step_accumulated({0, 10000}, 2, 1, 3), memory_fault);
}

}  // namespace variables_test
