// SPDX-License-Identifier: Apache-2.0
// Evaluations and checkpoints that a change of the world interrupts.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_evaluation_test {

using namespace replicated_master;

TEST_CASE("an evaluation of a version that no survivor has is dropped, and its version may come again") {
  master m(evaluated(2));
  m.start();
  m.reached(4, true);
  auto const e = m.ask(0);
  REQUIRE(e.kind == task_kind::evaluation);
  m.lose(1);
  m.enter(0, 1, copy(3, with_closed(1)));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.done(e, 0, {1}));
  auto const t = m.ask(0);
  CHECK(t.kind == task_kind::training);
  m.reached(4, true);
  auto const again = m.ask(0), more = m.ask(0);
  REQUIRE(again.kind == task_kind::evaluation);
  CHECK(again.lease != e.lease);
  CHECK(m.done(again, 0, {1}));
  CHECK(m.done(more, 0, {1}));
  CHECK(m.take<evaluation_done>());
  CHECK_FALSE(m.take<evaluation_done>());
}

TEST_CASE("predictions that are done stay done, whoever is lost") {
  master m(replicated(job_type::prediction_only));
  m.start();
  CHECK(m.done(m.ask(0), 0));
  m.lose(1);
  m.enter(0, 1, copy(0));
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.said("Going back"));
  auto const t = m.ask(0);
  REQUIRE(t.kind == task_kind::prediction);
  CHECK(t.key.index == 1);
  m.lose(0);
  CHECK(m.join(2));
  m.enter(2);
  REQUIRE(m.it.ready());
  auto const u = m.ask(2);
  CHECK(u.key.index == 1);
  CHECK(m.done(u, 2));
  CHECK(m.it.finished());
}

TEST_CASE("a checkpoint that a change of world interrupts is not held for ever") {
  // Members freeze two versions at most; what is never released keeps others out.
  master m(checkpointed());
  m.start();
  m.reached(2, false, true);
  REQUIRE(m.take<write_checkpoint>());
  m.reached(4, false, true);  // waits for the one before
  m.lose(1);
  m.enter(0, 1, copy(5, with_closed(2)));
  REQUIRE(m.it.ready());
  auto released = m.released(false);
  // Or they are written now.
  while (auto const w = m.take<write_checkpoint>()) {
    CHECK(w->generation == m.it.generation());
    m.it.checkpoint_written(w->generation, w->version, {}, m.now);
    for (std::uint64_t v : m.released(false)) released.push_back(v);
  }
  std::sort(released.begin(), released.end());
  CHECK(released == std::vector<std::uint64_t>{2, 4});
}

TEST_CASE("a version that has been written is told again, and is not written again") {
  // It is frozen no more: the attempt would only spoil the checkpoint that there is.
  master m(checkpointed());
  m.start();
  m.reached(4, false, true);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  m.it.checkpoint_written(w->generation, 4, {}, m.now);
  CHECK(m.released(false) == std::vector<std::uint64_t>{4});
  m.lose(1);
  m.enter(0, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  m.reached(4, false, true);
  CHECK_FALSE(m.take<write_checkpoint>());
  m.reached(6, false, true);
  CHECK(m.take<write_checkpoint>());
}

TEST_CASE("a version that was being written when its world ended is written by the next") {
  master m(checkpointed());
  m.start();
  m.reached(4, false, true);
  REQUIRE(m.take<write_checkpoint>());
  m.lose(0);  // who wrote it
  m.enter(1, 1, copy(4, with_closed(2)));
  REQUIRE(m.it.ready());
  m.reached(4, false, true);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  CHECK(w->generation == 2);
  CHECK(w->version == 4);
  CHECK_FALSE(m.take<write_checkpoint>());
  CHECK(m.released(false).empty());
  m.it.checkpoint_written(1, 4, "the connection has ended", m.now);  // the old world's
  CHECK_FALSE(m.said("cannot be written"));
  m.it.checkpoint_written(2, 4, {}, m.now);
  CHECK(m.said("Checkpoint of version 4 written"));
  CHECK(m.released(false) == std::vector<std::uint64_t>{4});
}

}  // namespace worlds_evaluation_test
