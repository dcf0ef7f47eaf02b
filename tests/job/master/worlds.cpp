// SPDX-License-Identifier: Apache-2.0
// The worlds of a job whose workers have a copy of the model each: the first, and those after a loss.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_test {

using namespace replicated_master;

TEST_CASE("the first world begins at once when all workers have entered") {
  master m;
  CHECK(m.join(0));
  m.enter(0);
  CHECK_FALSE(m.it.ready());
  CHECK(m.of(0) == nullptr);
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(m.join(1));
  CHECK_FALSE(m.it.ready());
  m.enter(1);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0 1");
  REQUIRE(m.of(0));
  CHECK(m.of(0)->number == m.it.generation());
  CHECK(m.of(0)->version == 0);
  CHECK(m.of(0)->restore == "");
  CHECK(m.of(0)->members[1].addresses == std::vector<std::string>{"tcp:h:2"});
  CHECK(m.of(1) == m.of(0));
  CHECK(m.of(1, 9) == nullptr);
  CHECK(m.of(7) == nullptr);
  CHECK_FALSE(m.take<find_restore_point>());
  CHECK_FALSE(m.take<configure_servers>());
  auto const t = m.ask();
  CHECK(t.kind == task_kind::training);
  CHECK(t.generation == m.it.generation());
}

TEST_CASE("the first world waits a while for workers that have not come, and no longer") {
  auto o = replicated();
  o.gathering = seconds(3);
  master m(o);
  CHECK(m.join(0));
  m.enter(0);
  m.pass(milliseconds(2750));
  CHECK_FALSE(m.it.ready());
  m.pass(milliseconds(500));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0");
  // Who comes then ends it.
  CHECK(m.join(1));
  CHECK_FALSE(m.it.ready());
  m.enter(0, 1, copy(0));
  m.enter(1);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1");
}

TEST_CASE("a job whose one worker comes does not wait") {
  auto o = replicated();
  o.num_workers = 1;
  master m(o);
  CHECK(m.join(0));
  m.enter(0);
  CHECK(m.it.ready());
}

TEST_CASE("a worker that joins and never enters does not keep the first world from beginning") {
  auto o = replicated();
  o.absence = seconds(20);
  master m(o);
  CHECK(m.join(0));
  CHECK(m.join(1));
  m.enter(0);
  m.pass(seconds(15));
  CHECK_FALSE(m.it.ready());  // it is alive, and has its time
  m.pass(seconds(10));
  CHECK(m.it.workers().find(1) == nullptr);
  REQUIRE(m.it.workers().find(0));
  CHECK(m.it.ready());
  CHECK(m.members() == "0");
}

TEST_CASE("the first world of a job that goes on begins from where it was") {
  auto o = replicated();
  o.start = {"/c/version-6", 6, with_closed(3)};
  master m(o);
  m.start();
  CHECK(m.of(0)->restore == "/c/version-6");
  CHECK(m.of(0)->version == 6);
  CHECK(m.members() == "0 1");  // nobody has it yet
  CHECK(m.ask().key.index == 3);
}

TEST_CASE("a loss voids all leases, and the next world goes on from the newest copy's ledger") {
  master m;
  m.start();
  auto const t0 = m.ask(0), t1 = m.ask(1), t2 = m.ask(0);
  CHECK(t0.key.index == 0);
  CHECK(t1.key.index == 1);
  CHECK(m.done(t0, 0));
  std::uint64_t const first = m.it.generation();
  m.lose(1);
  CHECK(m.it.generation() == first + 1);
  CHECK_FALSE(m.it.ready());
  CHECK(m.of(0) == nullptr);
  CHECK(m.ask(0).kind == task_kind::wait);
  CHECK_FALSE(m.done(t2, 0));  // void, though it is the survivor's own
  ledger l = with_closed(1);
  l.set_open({0, 1}, 1);
  m.enter(0, first, copy(3, l));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0*");
  CHECK(m.of(0)->version == 3);
  CHECK(m.of(0)->number == first + 1);
  CHECK_FALSE(m.take<find_restore_point>());
  CHECK_FALSE(m.said("Going back"));  // nothing that was done is undone
  // What is left, from where it stands.
  auto const a = m.ask(0);
  CHECK(a.key.index == 1);
  CHECK(a.applied == 1);
  CHECK(a.resumed);
  CHECK(a.generation == first + 1);
  CHECK_FALSE(m.done(t2, 0));
  CHECK(m.done(a));
  CHECK(m.work() == 3);
  CHECK(m.announce(10));
  CHECK(m.it.finished());
  CHECK(m.it.tasks()->done().records_done == 20);
}

TEST_CASE("what a lost worker had completed, and nobody else has, is leased again") {
  master m;
  m.start();
  auto const t0 = m.ask(0), t1 = m.ask(1);
  CHECK(m.done(t0, 0));
  CHECK(m.done(t1, 1));
  CHECK(m.it.progress().done.records_done == 8);
  m.lose(1);
  // The survivor has not completed the step that closed task 1.
  ledger l = with_closed(1);
  l.set_open({0, 1}, 1);
  m.enter(0, 1, copy(3, l));
  REQUIRE(m.it.ready());
  CHECK(m.it.progress().done.records_done == 4);
  CHECK(m.said("Going back to version 3, 4 records done"));
  auto const t = m.ask();
  CHECK(t.key.index == 1);
  CHECK(t.applied == 1);
}

TEST_CASE("a step that one survivor has completed counts for all") {
  master m;
  m.start(3);
  m.lose(2);
  m.enter(0, 1, copy(4, with_closed(1)));
  CHECK_FALSE(m.it.ready());
  m.enter(1, 1, copy(5, with_closed(2)));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0 1*");  // worker 0 is behind
  CHECK(m.of(0)->version == 5);
  CHECK(m.it.progress().version == 5);
  CHECK(m.ask().key.index == 2);
}

TEST_CASE("copies that are as new are all current") {
  master m;
  m.start(3);
  CHECK(m.join(3));
  for (std::uint32_t i : {2u, 0u, 1u}) m.enter(i, 1, copy(7, with_closed(1)));
  m.enter(3);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1* 2* 3");
}

TEST_CASE("worlds have greater and greater numbers, however they end") {
  master m;
  m.start();
  std::uint64_t last = m.it.generation();
  for (std::uint32_t i = 2; i < 6; ++i) {
    CHECK(m.join(i));
    CHECK(m.it.generation() > last);
    last = m.it.generation();
    for (auto const& [id, _] : std::map(m.it.workers().all())) m.enter(id, last - 1, copy(0));
    REQUIRE(m.it.ready());
    CHECK(m.of(0)->number == last);
  }
}

TEST_CASE("when all workers are lost the newest checkpoint is where it goes on") {
  auto o = checkpointed();
  master m(o);
  m.start();
  CHECK(m.done(m.ask(0), 0));
  m.lose(0);
  m.lose(1);
  CHECK_FALSE(m.it.ready());
  CHECK_FALSE(m.take<find_restore_point>());  // there is nobody to take it
  CHECK(m.join(2));
  CHECK_FALSE(m.take<find_restore_point>());
  m.enter(2);
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  CHECK(f->generation == m.it.generation());
  CHECK_FALSE(m.it.ready());
  m.it.restore_point_found(f->generation - 1, restore_point{"old", 1, {}}, m.now);
  CHECK_FALSE(m.it.ready());
  m.it.restore_point_found(f->generation, restore_point{"/c/version-4", 4, with_closed(2)}, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.of(2)->restore == "/c/version-4");
  CHECK(m.of(2)->version == 4);
  CHECK(m.members() == "2");
  CHECK(m.ask(2).key.index == 2);
  m.it.restore_point_found(f->generation, restore_point{"again", 9, {}}, m.now);  // told twice
  CHECK(m.of(2)->restore == "/c/version-4");
}

TEST_CASE("when all workers are lost and there is no checkpoint, it starts again") {
  master m;
  m.start();
  CHECK(m.work() == 4 + 1);
  CHECK(m.announce(10));
  REQUIRE(m.it.finished());
  master n;
  n.start();
  CHECK(n.done(n.ask(0), 0));
  n.lose(0);
  n.lose(1);
  CHECK(n.join(2));
  n.enter(2);
  auto const f = n.take<find_restore_point>();
  REQUIRE(f);
  n.it.restore_point_found(f->generation, std::nullopt, n.now);
  REQUIRE(n.it.ready());
  CHECK(n.of(2)->restore == "");
  CHECK(n.of(2)->version == 0);
  CHECK(n.said("Going back to version 0, 0 records done"));
  CHECK(n.work(2) == 5);
}

TEST_CASE("survivors without a copy are as good as none") {
  // A newcomer that was still copying when the only one with a copy was lost.
  master m;
  m.start(1 + 1);
  m.lose(0);
  m.enter(1, 1);  // has not got its copy
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  m.it.restore_point_found(f->generation, std::nullopt, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "1");
}

TEST_CASE("a loss or a newcomer while a checkpoint is looked for: it is asked again, and one answer counts") {
  master m;
  m.start();
  m.lose(0);
  m.lose(1);
  CHECK(m.join(2));
  m.enter(2);
  auto const first = m.take<find_restore_point>();
  REQUIRE(first);
  CHECK(m.join(3));
  m.it.restore_point_found(first->generation, restore_point{"a", 2, with_closed(1)}, m.now);
  CHECK_FALSE(m.it.ready());  // worker 3 has not entered
  m.enter(3);
  auto const second = m.take<find_restore_point>();
  REQUIRE(second);
  m.it.restore_point_found(second->generation, restore_point{"b", 4, with_closed(2)}, m.now);
  REQUIRE(m.it.ready());
  CHECK(m.members() == "2 3");
  CHECK(m.of(2)->restore == "b");
}

TEST_CASE("a checkpoint of other data ends the job with its reason") {
  master m;
  m.start();
  m.lose(0);
  m.lose(1);
  CHECK(m.join(2));
  m.enter(2);
  auto const f = m.take<find_restore_point>();
  REQUIRE(f);
  m.it.restore_point_found(f->generation, restore_point{"/c", 4, with_closed(99)}, m.now);
  CHECK(m.it.failed());
  CHECK(m.it.reason().find("cannot go back to '/c'") == 0);
}

}  // namespace worlds_test
