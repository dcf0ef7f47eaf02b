// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/lineage.hpp"

#include <doctest/doctest.h>

namespace lineage_test {

using namespace edl::master;
using std::chrono::seconds;
using replacement = lineages::replacement;

namespace {
time_point const start{};
}

TEST_CASE("who is given up is replaced at once, and how it ends is nobody's fault") {
  lineages all({.count = 1, .budget = 0});
  all.lost(0, start);
  CHECK(all.given_up(0) == replacement{0, 1});
  CHECK(!all.given_up(0));
  CHECK(!all.exited(0, exit_kind::failed, "it was told to leave"));
  CHECK(all.overdue(start + seconds(99)).empty());
  CHECK(all.ended() == 0);
  CHECK(!all.exited(1, exit_kind::failed, "out of memory"));  // its heir's is
  CHECK(all.reason() == "out of memory");
  CHECK(!all.given_up(1));

  lineages servers({.count = 2, .budget = 0, .same_id = true});
  CHECK(servers.given_up(1) == replacement{1, 1});
}

TEST_CASE("who fails again and again is replaced after pauses that grow, and in the end not at all") {
  lineages all({.count = 1, .budget = 9, .pause = seconds(1)});
  time_point now = start;
  CHECK(all.exited(0, exit_kind::failed, "out of memory", now) == replacement{0, 1});
  for (std::uint32_t id = 1; id < 9; ++id) {
    CAPTURE(id);
    seconds const pause(std::min(60, 1 << (id - 1)));
    CHECK(!all.exited(id, exit_kind::failed, "out of memory", now));
    CHECK(all.pauses(id) == pause);
    CHECK(!all.exited(id, exit_kind::failed, "out of memory", now));  // told twice
    all.lost(id, now);
    CHECK(all.overdue(now + pause).empty());
    now += pause + seconds(1);
    CHECK(all.overdue(now) == std::vector<replacement>{{id, id + 1}});
    CHECK(!all.pauses(id + 1));
  }
  CHECK(!all.exited(9, exit_kind::failed, "out of memory", now));
  CHECK(all.all_ended());

  lineages servers({.count = 1, .budget = 9, .same_id = true, .pause = seconds(1)});
  CHECK(servers.exited(0, exit_kind::failed, "", now) == replacement{0, 0});
  CHECK(!servers.exited(0, exit_kind::failed, "", now));
  servers.joined(0);  // somebody started it all the same
  CHECK(!servers.pauses(0));
  CHECK(servers.exited(0, exit_kind::preempted, "", now) == replacement{0, 0});
}

TEST_CASE("reasons that differ") {
  lineages all({.count = 1, .budget = 1});
  CHECK(all.reason() == "");
  all.exited(0, exit_kind::failed, "a");
  CHECK(all.reason() == "a");
  all.exited(1, exit_kind::failed, "b");
  CHECK(all.reason() == "2 failures, the last of them: b");
  CHECK(all.all_ended());
}

TEST_CASE("a server is replaced in its place") {
  lineages all({.count = 2, .budget = 1, .same_id = true});
  CHECK(all.exited(1, exit_kind::preempted, "") == replacement{1, 1});
  CHECK(all.exited(1, exit_kind::failed, "") == replacement{1, 1});
  CHECK(!all.exited(1, exit_kind::failed, ""));
  CHECK(all.ended() == 1);
  all.joined(1);  // somebody started it all the same
  CHECK(all.ended() == 0);
  CHECK(!all.exited(1, exit_kind::failed, ""));  // its budget is still used up
}

TEST_CASE("who is lost without a word is replaced after the grace, once") {
  lineages all({.count = 2, .grace = seconds(10)});
  all.lost(0, start);
  CHECK(all.overdue(start + seconds(10)).empty());
  CHECK(all.overdue(start + seconds(11)) == std::vector<replacement>{{0, 2}});
  CHECK(all.overdue(start + seconds(99)).empty());
  CHECK(!all.exited(0, exit_kind::failed, "late"));
  all.lost(1, start);
  all.joined(1);  // back in time
  CHECK(all.overdue(start + seconds(99)).empty());
  all.joined(7);  // somebody else's
  CHECK(all.exited(7, exit_kind::preempted, "") == replacement{7, 8});
}

}  // namespace lineage_test
