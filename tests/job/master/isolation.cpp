// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/isolation.hpp"

#include <doctest/doctest.h>

namespace isolation_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

time_point const start{1h};

}  // namespace

TEST_CASE("the silence of all of several members is the master's absence, that of one is not") {
  isolation alone(10s, 60s), among(10s, 60s);
  alone.look(start, 1, start);
  CHECK_FALSE(alone.look(start, 1, start + 6s).began);
  among.look(start, 2, start);
  CHECK_FALSE(among.look(start, 2, start + 5s).began);
  CHECK(among.look(start, 2, start + 5001ms).began);
  CHECK(among.lasts());
  CHECK_FALSE(among.look(start, 2, start + 6s).began);  // told once
  CHECK(among.suspected(2, start + 6s));
}

TEST_CASE("the last of several that were silent together is not blamed when the others have left") {
  isolation it(10s, 60s);
  it.look(start, 2, start);
  it.look(start, 2, start + 6s);
  it.look(start, 1, start + 11s);
  CHECK(it.suspected(1, start + 11s));
  it.look(start + 12s, 1, start + 12s);
  CHECK_FALSE(it.suspected(1, start + 18s));
}

TEST_CASE("after a pause of the master's own its members have a moment to connect again") {
  isolation it(10s, 60s);
  it.held_up(7s, start);
  CHECK(it.finds_back(start, start + 6s));
  CHECK_FALSE(it.finds_back(start, start + 7s));
  it.held_up(30s, start + 20s);
  CHECK(it.finds_back(start + 20s, start + 29s));
  CHECK_FALSE(it.finds_back(start + 21s, start + 29s));
  CHECK_FALSE(it.finds_back(start + 20s, start + 30s));
}

TEST_CASE("an absence is excused for so long and no longer") {
  isolation it(10s, 60s);
  it.look(start, 2, start);
  it.look(start, 2, start + 6s);
  CHECK(it.suspected(2, start + 60s));
  CHECK_FALSE(it.suspected(2, start + 60001ms));
}

TEST_CASE("where nobody is a member nobody is missed") {
  isolation it(10s, 60s);
  it.look(start, 2, start);
  it.look(start, 2, start + 6s);
  CHECK_FALSE(it.look({}, 0, start + 7s).began);
  CHECK_FALSE(it.lasts());
  CHECK_FALSE(it.look(start + 100s, 2, start + 100s).absence);
}

}  // namespace isolation_test
