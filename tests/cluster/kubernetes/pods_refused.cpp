// SPDX-License-Identifier: Apache-2.0
// Pods that are refused, that find no room, or that run out of memory.
#include <doctest/doctest.h>

#include <algorithm>

#include "cluster/kubernetes/driven_pods.hpp"
#include "edl/core/quantity.hpp"

namespace pods_refused_test {

using namespace driven_pods;

TEST_CASE("Out of memory: successors get twice as much, up to eight times, then it is a failure") {
  drive d;
  std::string had = "2Gi";
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto s = d.run(worker(i));
    d.all.take_commands();
    s.memory = had;
    d.exit(s, 137, "OOMKilled");
    auto const ends = d.take<pod_ended>();
    REQUIRE(ends.size() == 1);
    CHECK(ends[0].ending.outside == (i < 3));
    CHECK(ends[0].ending.signal == 0);
    d.all.start(worker(i + 1), i, d.now);
    auto const next = d.take<create_pod>();
    REQUIRE(next.size() == 1);
    had = next[0].limit.at("memory");
    CHECK(edl::bytes_of(had) == std::uint64_t{2} << (30 + std::min(i + 1, 3u)));
    CHECK(edl::bytes_of(next[0].request.at("memory")) == std::uint64_t{1} << (30 + std::min(i + 1, 3u)));
    CHECK(next[0].request.at("cpu") == "1");
  }
}

TEST_CASE("Two that run out of memory together are no reason to give four times as much") {
  drive d;
  auto a = d.run(worker(0)), b = d.run(worker(1));
  a.memory = b.memory = "2Gi";
  d.exit(a, 137, "OOMKilled");
  d.exit(b, 137, "OOMKilled");
  d.all.take_commands();
  d.all.start(worker(2), 0, d.now);
  CHECK(edl::bytes_of(d.take<create_pod>()[0].limit.at("memory")) == std::uint64_t{4} << 30);
}

TEST_CASE("No room under the quota: asked again with growing pauses, told once") {
  drive d;
  d.all.start(worker(0), std::nullopt, d.now);
  std::string const quota =
      "pods \"w\" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=4, limited: cpu=4";
  int notes = 0, tries = 0;
  for (int second = 0; second < 60; ++second) {
    d.all.tick(d.now);
    for (auto const& c : d.all.take_commands()) {
      notes += std::holds_alternative<pod_note>(c);
      CHECK_FALSE(std::holds_alternative<pod_ended>(c));
      if (!std::holds_alternative<create_pod>(c)) continue;
      ++tries;
      d.all.refused(worker(0), {403, "Forbidden", quota}, d.now);
    }
    d.now += 1s;
  }
  CHECK(notes == 1);
  CHECK(tries >= 5);
  CHECK(tries <= 10);
}

TEST_CASE("What the API server refuses for good is a failed process, with its words") {
  drive d;
  d.all.start(worker(0), std::nullopt, d.now);
  d.all.refused(worker(0), {403, "Forbidden", "no PriorityClass with name no-such was found"}, d.now);
  auto const ends = d.take<pod_ended>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ending.failed());
  CHECK(describe(ends[0].ending) == "cannot be created: no PriorityClass with name no-such was found");
}

TEST_CASE("A right to create pods that is missing ends a job that has none yet") {
  drive d;
  d.all.listed({}, d.now);
  d.all.start(worker(0), std::nullopt, d.now);
  d.all.take_commands();
  d.all.refused(worker(0), no_right, d.now);
  auto const commands = d.all.take_commands();
  REQUIRE(commands.size() == 3);
  CHECK(std::get<not_allowed>(commands[0]).why == no_right.message);
  CHECK(std::get<pod_ended>(commands[2]).ending.failed());
}

TEST_CASE("A right to create pods that is taken away from a job that has some is waited for") {
  drive d;
  SUBCASE("one was made") {
    d.all.listed({}, d.now);
    d.run(worker(0));
  }
  SUBCASE("a master before this one has made one") {
    d.all.listed({{.who = worker(0), .name = "n", .uid = "u", .at = phase::running}}, d.now);
  }
  d.all.start(worker(1), std::nullopt, d.now);
  d.all.take_commands();
  d.all.refused(worker(1), no_right, d.now);
  auto const commands = d.all.take_commands();
  REQUIRE(commands.size() == 1);
  CHECK(std::get<pod_note>(commands[0]).text == "worker-1 cannot be created yet: " + no_right.message);
  d.all.tick(d.now);
  CHECK(d.take<create_pod>().empty());
  d.all.tick(d.now + 60s);
  CHECK(d.take<create_pod>().size() == 1);
  d.all.refused(worker(1), no_right, d.now + 60s);
  CHECK(d.all.take_commands().empty());  // told once
}

TEST_CASE(
    "An image that is not there is a failed process; one that is slow to come is told of, and waited for") {
  drive d;
  d.all.start(worker(0), std::nullopt, d.now);
  pod_status s{.who = worker(0), .name = "elasticdl-j-worker-0", .uid = "u"};
  d.all.created(worker(0), "u");
  d.all.take_commands();
  SUBCASE("never pulled") {
    s.waiting = "ErrImageNeverPull", s.waiting_why = "Container image \"x:1\" is not present";
    d.all.changed(s, d.now);
    auto const ends = d.take<pod_ended>();
    REQUIRE(ends.size() == 1);
    CHECK(describe(ends[0].ending) ==
          "cannot start: ErrImageNeverPull: Container image \"x:1\" is not present");
  }
  SUBCASE("slow") {
    s.waiting = "ImagePullBackOff", s.waiting_why = "Back-off pulling image";
    int notes = 0;
    bool ended = false;
    for (int minute = 0; minute < 7 && !ended; ++minute, d.now += 60s) {
      d.all.changed(s, d.now);
      for (auto const& c : d.all.take_commands()) {
        notes += std::holds_alternative<pod_note>(c);
        ended |= std::holds_alternative<pod_ended>(c);
      }
      CHECK(ended == (minute >= 5));
    }
    CHECK(notes == 1);
  }
  SUBCASE("no node has room") {
    s.unplaced = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.";
    for (int hour = 0; hour < 5; ++hour, d.now += 3600s) d.all.changed(s, d.now);
    auto const commands = d.all.take_commands();
    REQUIRE(commands.size() == 1);
    CHECK(std::get<pod_note>(commands[0]).text ==
          "worker-0 cannot start yet: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
  }
}

}  // namespace pods_refused_test
