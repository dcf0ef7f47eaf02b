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
