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

/// They have made passes in their world, and wait.
void train(master& m, std::vector<std::uint32_t> const& who, std::uint64_t passes = 1) {
  m.now += milliseconds(1);
  for (std::uint32_t const i : who) m.it.heartbeat(role::worker, i, 1, {.position = 2 * passes}, m.now);
}

/// Time passes, in which those of `heard` give a sign of life, and make no pass.
void wait(master& m, edl::master::duration d, std::vector<std::uint32_t> const& heard,
          std::uint64_t passes = 1) {
  for (auto const until = m.now + d; m.now < until;) {
    m.now += milliseconds(250);
    for (std::uint32_t const i : heard) m.it.heartbeat(role::worker, i, 1, {.position = 2 * passes}, m.now);
    m.it.tick(m.now);
  }
}

}  // namespace

TEST_CASE("a worker that all others wait for is left out, and follows when it is heard again") {
  master m;
  start_able(m, 3);
  train(m, {0, 1, 2});
  wait(m, seconds(2), {0, 2});
  CHECK(m.it.ready());
  wait(m, milliseconds(250), {0, 2});
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
  train(m, {0, 2}, 2);
  // It had made a step that the others make again.
  m.it.heartbeat(role::worker, 1, 1, {.version = 6, .position = 2}, m.now);
  m.it.heartbeat(role::worker, 0, 1, {.version = 5, .position = 4}, m.now);
  CHECK(m.it.versions().newest() == 5);
  wait(m, seconds(10), {0, 1, 2}, 2);
  CHECK(m.it.workers().all().size() == 3);
  m.enter(1, 2, copy(8));
  for (std::uint32_t const i : {0, 2}) m.enter(i, 2, copy(8));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 2*");
  // The second time they are twice as patient.
  train(m, {0, 1, 2}, 3);
  wait(m, seconds(4), {0, 2}, 3);
  CHECK(m.it.ready());
  wait(m, milliseconds(250), {0, 2}, 3);
  CHECK_FALSE(m.it.ready());
}

TEST_CASE("two workers that fall silent one after the other are left out together") {
  master m;
  start_able(m, 4);
  train(m, {0, 1, 2, 3});
  wait(m, milliseconds(500), {0, 1, 3});
  wait(m, seconds(2), {0, 3});
  CHECK(m.it.ready());  // 2 has been silent for long enough, 1 not yet
  wait(m, milliseconds(250), {0, 3});
  CHECK_FALSE(m.it.ready());
  for (std::uint32_t const i : {0, 3}) m.enter(i, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 3*");
}

TEST_CASE("a worker that is left out and stays silent is lost without ending the next world") {
  master m;
  start_able(m, 2);
  train(m, {0, 1});
  wait(m, milliseconds(2250), {0});
  m.enter(0, 1, copy(5));
  REQUIRE(m.it.ready());
  wait(m, seconds(3), {0});
  CHECK(m.said("worker 1 is lost: it gave no sign of life"));
  CHECK(m.it.ready());
  CHECK(m.members() == "0*");
}

TEST_CASE("a silent worker is not left out while nobody waits for a step") {
  for (char const* const how : {"another computes", "passes take long", "no pass yet", "no work is left",
                                "it cannot follow", "all are silent", "the job is suspended"}) {
    CAPTURE(how);
    auto const is = [&](char const* one) { return how == std::string(one); };
    master m(is("no work is left") ? checkpointed() : replicated());
    is("it cannot follow") ? m.start(3) : start_able(m, 3);
    if (is("no work is left")) m.work();
    if (!is("no pass yet")) train(m, {0, 1, 2});
    if (is("the job is suspended")) m.it.suspend(m.now);
    std::uint64_t const world = m.it.generation();
    for (int i = 0; i < 16; ++i) {  // 4 s
      m.now += milliseconds(250);
      edl::master::vitals v{.position = is("no pass yet") ? 0u : 2u};
      if (is("another computes")) v.position = 3;
      if (is("passes take long")) v.pass = 3;  // of 2 records
      for (std::uint32_t const id : {0, 2})
        if (!is("all are silent")) m.it.heartbeat(role::worker, id, 1, v, m.now);
      m.it.tick(m.now);
    }
    CHECK(m.it.generation() == world);
    CHECK(m.it.workers().all().size() == 3);
  }
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
