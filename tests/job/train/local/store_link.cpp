// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/local/store_link.hpp"

#include <doctest/doctest.h>

#include "job/ps/small_store.hpp"

namespace store_link_test {

using namespace small_store;

TEST_CASE("a store in this process is what servers are: pushed to, pulled from, asked for a position") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once, .evaluation_steps = 1});
  std::vector<push_result> told;
  edl::train::store_link link(s, false, [&](push_result const& r) { told.push_back(r); });
  CHECK(link.push(batch(7, 0, 2), 0, ones, twos, {}).version == 1);
  CHECK(link.position({0, 7}, 2) == 1);
  CHECK(link.push(batch(7, 1, 2), 1, ones, twos, {}).version == 2);
  CHECK_FALSE(link.push(batch(7, 1, 2), 1, ones, twos, {}).stale);  // a repeat
  CHECK(link.position({0, 7}, 2) == 2);                             // closed: all of them
  REQUIRE(told.size() == 3);
  CHECK(told[1].evaluate);
  CHECK(told[2].outcome == edl::ps::push_outcome::repeat);
  std::vector<float> now(6), before(6);
  CHECK(link.pull(now) == 2);
  CHECK(now == std::vector<float>{2, 2, 2, 2, 4, 4});
  link.pull_frozen(1, before);
  CHECK(before == std::vector<float>{1, 1, 1, 1, 2, 2});
  CHECK_FALSE(link.in_place());
  CHECK(edl::train::store_link(s, true, {}).in_place() == 2);
}

TEST_CASE("the current version can be had, frozen or not, and no other that is not") {
  auto const layout = small_layout();
  store s({.layout = layout, .elements = {0, 6}, .rule = adding, .when = at_once});
  s.push(batch(0), 0, ones, twos);
  CHECK(edl::train::frozen_or_current(s, 1).version() == 1);
  CHECK(contains(complaint([&] { edl::train::frozen_or_current(s, 0); }), "version 0 is not frozen"));
}

}  // namespace store_link_test
