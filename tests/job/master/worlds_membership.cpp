// SPDX-License-Identifier: Apache-2.0
// The members of a world: newcomers, the silent, the suspected.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_membership_test {

using namespace replicated_master;

TEST_CASE("who does not come to the next world is given up after a while, and nobody else is") {
  // Whatever its place among the ids: the world that begins meanwhile is not to be taken for absence.
  for (std::uint32_t absent : {0u, 1u, 2u, 3u}) {
    CAPTURE(absent);
    master m;
    m.start(4);
    CHECK(m.join(4));
    for (std::uint32_t i = 0; i < 5; ++i)
      if (i != absent) m.enter(i, i == 4 ? 0 : 1, i == 4 ? std::nullopt : std::optional(copy(2)));
    m.pass(seconds(19));
    CHECK_FALSE(m.it.ready());
    CHECK(m.it.workers().all().size() == 5);
    m.pass(seconds(2));
    CHECK(m.said("worker " + std::to_string(absent) + " is lost: it does not come to the next world"));
    CHECK(m.it.workers().find(absent) == nullptr);
    CHECK(m.it.workers().all().size() == 4);
    CHECK(m.it.ready());
    CHECK(m.it.current_world().members.size() == 4);
    CHECK(m.it.generation() == 2);
  }
}

TEST_CASE("nobody is given up while nobody has come") {
  master m;
  m.start();
  CHECK(m.join(2));
  m.pass(seconds(60));
  CHECK(m.it.workers().all().size() == 3);
}

TEST_CASE("who is given up because another was lost is lost once, though it had fallen silent, too") {
  master m;
  m.start(4);
  std::uint64_t w = 1;
  for (; w < 4; ++w) {
    m.enter(0, w, copy(5), 2u);
    for (std::uint32_t const id : {1u, 2u, 3u}) m.enter(id, w, copy(5));
    REQUIRE(m.it.ready());
  }
  m.enter(0, w, copy(5), 2u);
  for (std::uint32_t const id : {2u, 3u}) m.enter(id, w, copy(5));
  m.pass(seconds(7), {1, 2});
  CHECK(m.said("worker 1 is lost: it gave no sign of life"));
  CHECK(m.said("worker 2 is lost: others cannot reach it"));
  CHECK_FALSE(m.said("worker 2 is lost: it gave no sign of life"));
}

TEST_CASE("without replicas nobody enters") {
  auto o = replicated();
  o.replicas = false;
  master m(o);
  CHECK(m.join(0));
  m.enter(0, 5, copy(3));
  CHECK(m.of(0) == nullptr);
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 1);
}

TEST_CASE("worlds that break over and over, without a step: who is missed is lost") {
  master m;
  m.start(3);
  for (std::uint64_t w = 1; w <= 4; ++w) {  // the first one has got somewhere
    CAPTURE(w);
    REQUIRE(m.it.ready());
    CHECK(m.it.workers().find(1) != nullptr);
    m.enter(0, w, copy(5), 1u);
    m.enter(1, w, copy(5));
    m.enter(2, w, copy(5));
  }
  CHECK(m.said("worker 1 is lost: others cannot reach it"));
  CHECK(m.it.workers().find(1) == nullptr);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2*");
}

TEST_CASE("the last worker is not lost for anybody's suspicion") {
  master m;
  m.start(1);
  for (std::uint64_t w = 1; w <= 6; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5), 0u);
  }
  CHECK(m.it.workers().find(0) != nullptr);
}

TEST_CASE("whoever of two that accuse each other is lost, the other goes on, and is not lost for it") {
  master m;
  m.start();
  for (std::uint64_t w = 1; w <= 4; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5), 1u);
    m.enter(1, w, copy(5), 0u);
  }
  CHECK(m.it.workers().all().size() == 1);
  CHECK(m.it.workers().find(0) != nullptr);  // the older
  CHECK(m.it.ready());
}

TEST_CASE("who follows is lost without ending a world, and begins one when all others are lost") {
  master m;
  m.start();
  CHECK(m.follow(2));
  CHECK(m.follow(3));
  m.lose(2);
  CHECK(m.it.ready());
  m.lose(0);
  m.enter(1, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "1*");
  m.lose(1);
  CHECK_FALSE(m.it.ready());
  m.enter(3, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "3*");
}

namespace {

/// A world of workers that could follow.
void start_able(master& m, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) {
    join_request r{role::worker, i, 1, {"tcp:h:" + std::to_string(i + 1)}, 5};
    r.may_follow = true;
    CHECK(m.it.join(r, m.now).accepted);
  }
  for (std::uint32_t i = 0; i < n; ++i) m.enter(i);
  if (!m.it.ready()) m.pass(seconds(4));
  REQUIRE(m.it.ready());
}

}  // namespace

TEST_CASE("a worker that all others wait for is left out, and follows when it is heard again") {
  master m;
  start_able(m, 3);
  m.pass(seconds(2), {1});
  CHECK(m.it.ready());
  m.pass(milliseconds(250), {1});
  CHECK_FALSE(m.it.ready());
  CHECK(m.said("worker 1 has not been heard for 2.2 s, and the others wait for it: they go on without it"));
  m.enter(0, 1, copy(5));
  CHECK_FALSE(m.it.ready());
  m.enter(2, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2*");
  m.enter(1, 1, copy(5));  // the reply is the world that it is to follow
  CHECK(m.it.ready());
  REQUIRE(m.of(1));
  CHECK(m.of(1)->members.size() == 2);
  m.pass(seconds(10));
  CHECK(m.it.workers().all().size() == 3);
  m.enter(1, 2, copy(8));
  for (std::uint32_t const i : {0, 2}) m.enter(i, 2, copy(8));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 2*");
}

TEST_CASE("a worker that is left out and stays silent is lost without ending the next world") {
  master m;
  start_able(m, 2);
  m.pass(milliseconds(2250), {1});
  m.enter(0, 1, copy(5));
  REQUIRE(m.it.ready());
  m.pass(seconds(3), {1});
  CHECK(m.said("worker 1 is lost: it gave no sign of life"));
  CHECK(m.it.ready());
  CHECK(m.members() == "0*");
}

TEST_CASE("a silent worker is not left out while another computes, nor if it or all cannot follow") {
  master m;
  start_able(m, 3);
  for (int i = 0; i < 16; ++i) {  // 4 s
    m.now += milliseconds(250);
    m.it.heartbeat(role::worker, 0, 1, {.position = 3}, m.now);
    m.it.heartbeat(role::worker, 2, 1, {}, m.now);
    m.it.tick(m.now);
    CHECK(m.it.ready());
  }
  master unable;
  unable.start(3);
  unable.pass(seconds(4), {1});
  CHECK(unable.it.ready());
  master alone;
  start_able(alone, 2);
  alone.pass(seconds(4), {0, 1});
  CHECK(alone.it.ready());
}

TEST_CASE("a follower that has no copy begins from a checkpoint when all others are lost") {
  master m;
  m.start();
  CHECK(m.follow(2));
  m.lose(0);
  m.lose(1);
  m.enter(2, 0);
  CHECK(m.take<find_restore_point>());
}

}  // namespace worlds_membership_test
