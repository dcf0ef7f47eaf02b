// SPDX-License-Identifier: Apache-2.0
// The members of a world: newcomers, the silent, the suspected.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_membership_test {

using namespace replicated_master;

using lines = std::vector<std::uint32_t>;  // ids

TEST_CASE("who joins while a world is formed is in it") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(2));
  CHECK(m.join(5));
  m.enter(1, 1, copy(2));
  CHECK_FALSE(m.it.ready());  // worker 5 has joined and is awaited
  m.enter(5);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 5");
  CHECK(m.it.generation() == 2);
}

TEST_CASE("who is lost while a world is formed is not in it, whether it had entered or not") {
  for (bool entered : {false, true}) {
    CAPTURE(entered);
    master m;
    m.start(3);
    m.lose(2);
    if (entered) m.enter(1, 1, copy(9, with_closed(4)));
    m.enter(0, 1, copy(2, with_closed(1)));
    m.it.exited(role::worker, 1, exit_kind::preempted, "killed", m.now);
    if (entered) {
      // Both had entered before worker 1 was lost: their world was already formed, and breaks.
      CHECK(m.it.generation() == 3);
      m.enter(0, 2, copy(2, with_closed(1)));
    }
    REQUIRE(m.it.ready());
    CHECK(m.members() == "0*");
    CHECK(m.of(0)->version == 2);
    CHECK(m.ask().key.index == 1);
  }
}

TEST_CASE("the copy of one that was lost after it had entered is not counted on") {
  master m;
  m.start(4);
  m.lose(3);
  m.enter(1, 1, copy(9, with_closed(4)));
  m.enter(0, 1, copy(2, with_closed(1)));
  m.lose(1);  // worker 2 is still awaited
  CHECK_FALSE(m.it.ready());
  m.enter(2, 1, copy(1));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2");
  CHECK(m.of(0)->version == 2);
}

TEST_CASE("a new process under the id of a member ends its world") {
  master m;
  m.start();
  CHECK(m.join(1, 2));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(50), {}, 1);  // the old process: a stranger now
  m.enter(0, 1, copy(3));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 0, {}, {}, 2);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
  CHECK(m.of(0)->version == 3);
  CHECK(m.of(1, 1) == nullptr);
  CHECK(m.of(1, 2) != nullptr);
}

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

TEST_CASE("two that do not come are given up, the others go on") {
  master m;
  m.start(4);
  CHECK(m.join(4));
  m.enter(1, 1, copy(2));
  m.enter(3, 1, copy(2));
  m.enter(4);
  m.pass(seconds(21));
  CHECK(m.it.ready());
  CHECK(m.members() == "1* 3* 4");
}

TEST_CASE("nobody is given up while nobody has come") {
  master m;
  m.start();
  CHECK(m.join(2));
  m.pass(seconds(60));
  CHECK(m.it.workers().all().size() == 3);
}

TEST_CASE("who has only just joined has its time, however long the others have been waiting") {
  master m;
  m.start();
  CHECK(m.join(2));
  m.enter(0, 1, copy(1));
  m.enter(2);
  m.pass(seconds(18));  // worker 1 is awaited
  CHECK(m.join(3));
  m.pass(seconds(4));
  CHECK(m.it.workers().find(1) == nullptr);
  CHECK(m.it.workers().find(3) != nullptr);
  m.enter(3);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 2 3");
}

TEST_CASE("who falls silent while a world is formed is lost, and the world begins") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(2));
  m.pass(seconds(7), {1});
  CHECK(m.said("worker 1 is lost: it gave no sign of life"));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0*");
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

TEST_CASE("strangers do not enter, and end no world") {
  master m;
  m.start();
  m.enter(9, 1, copy(99));
  m.enter(0, 1, copy(99), {}, 77);  // not this process
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 1);
  m.lose(1);
  m.enter(1, 1, copy(99));  // given up
  m.enter(9, 1, copy(99));
  CHECK_FALSE(m.it.ready());
  m.enter(0, 1, copy(2));
  REQUIRE(m.it.ready());
  CHECK(m.of(0)->version == 2);
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

TEST_CASE("to enter again changes nothing") {
  master m;
  CHECK(m.join(0));
  CHECK(m.join(1));
  for (int i = 0; i < 3; ++i) m.enter(0);
  CHECK_FALSE(m.it.ready());
  m.enter(1);
  REQUIRE(m.it.ready());
  // Asked again, with the world that it was in before: the answer is the world that there is.
  auto const t = m.ask(0);
  for (int i = 0; i < 3; ++i) m.enter(0), m.enter(1);
  CHECK(m.it.generation() == 1);
  CHECK(m.of(0)->number == 1);
  CHECK(m.done(t, 0));
  // Out of the world that there is: the next one is formed, once.
  for (int i = 0; i < 3; ++i) m.enter(0, 1, copy(2));
  CHECK(m.it.generation() == 2);
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(2));
  CHECK(m.it.ready());
  m.enter(1, 1, copy(2));
  CHECK(m.it.ready());
  CHECK(m.it.generation() == 2);
}

TEST_CASE("a worker that enters anew with another position has the newer one") {
  master m;
  m.start();
  m.enter(0, 1, copy(3, with_closed(1)));
  m.enter(0, 1, copy(4, with_closed(2)));
  m.enter(1, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
}

TEST_CASE("a broken world is ended by whoever says so first") {
  master m;
  m.start();
  auto const t = m.ask(1);
  m.enter(0, 1, copy(1), 1u);
  CHECK_FALSE(m.it.ready());
  CHECK(m.said("worker 0 has left world 1: it misses worker 1"));
  CHECK_FALSE(m.done(t, 1));
  CHECK(m.it.workers().all().size() == 2);  // nobody is lost for it
  m.enter(1, 1, copy(1), 0u);
  CHECK(m.it.ready());
  CHECK(m.members() == "0* 1*");
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

TEST_CASE("worlds that break after steps cost nobody its place") {
  master m;
  m.start(3);
  for (std::uint64_t w = 1; w <= 10; ++w) {
    REQUIRE(m.it.ready());
    m.enter(0, w, copy(5 + w), 1u);
    m.enter(1, w, copy(5 + w));
    m.enter(2, w, copy(5 + w));
  }
  CHECK(m.it.workers().all().size() == 3);
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

TEST_CASE("who follows ends no world, is given no task, and is in the next world when it enters") {
  master m;
  m.start();
  CHECK(m.follow(2));
  CHECK(m.it.ready());
  m.enter(2, 0);
  REQUIRE(m.it.ready());
  REQUIRE(m.of(2));
  CHECK(m.of(2)->number == 1);  // whom it may follow
  CHECK(m.ask(2).kind == task_kind::wait);
  CHECK(m.ask(0).kind == task_kind::training);
  m.enter(2, 1, copy(5));
  CHECK_FALSE(m.it.ready());
  m.enter(0, 1, copy(5));
  m.enter(1, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 2*");
}

TEST_CASE("a world that ends meanwhile does not wait for who follows, but for whom a member brings") {
  for (bool const brought : {false, true}) {
    CAPTURE(brought);
    master m;
    m.start();
    CHECK(m.follow(2));
    m.it.enter(0, {.incarnation = 1, .last = 1, .copy = copy(5), .brings = brought ? lines{2} : lines{}},
               m.now);
    if (!brought) m.enter(2, 0);  // it has not caught up yet
    m.enter(1, 1, copy(5));
    CHECK(m.it.ready() == !brought);
    if (!brought) continue;
    m.enter(2, 1, copy(4));
    REQUIRE(m.it.ready());
    CHECK(m.members() == "0* 1* 2");
  }
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

TEST_CASE("who would follow has nobody to follow before the first world, and when nobody is left") {
  master first;
  CHECK(first.follow(0));
  CHECK(first.follow(1));
  first.enter(0);
  first.enter(1);
  REQUIRE(first.it.ready());
  CHECK(first.members() == "0 1");
  first.lose(0);
  first.lose(1);
  CHECK(first.follow(2));
  first.enter(2, 0);
  CHECK(first.take<find_restore_point>());
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
