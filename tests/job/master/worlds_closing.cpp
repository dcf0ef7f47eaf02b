// SPDX-License-Identifier: Apache-2.0
// How a job of worlds ends, and how lanes are dealt.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "job/master/replicated_master.hpp"

namespace worlds_closing_test {

using namespace replicated_master;

TEST_CASE("when the job is over nobody enters and no world is formed") {
  master m;
  m.start();
  m.work();
  CHECK(m.announce(10));
  REQUIRE(m.it.finished());
  std::uint64_t const g = m.it.generation();
  m.enter(0, 1, copy(10));
  CHECK_FALSE(m.join(2));
  m.lose(1);
  m.pass(seconds(40));
  CHECK(m.it.generation() == g);
  CHECK(m.it.finished());
  CHECK(m.ask(0).kind == task_kind::finished);
}

namespace {

// Two lanes, and versions that are evaluated before the next step.
job_options resting() {
  auto o = evaluated(2);
  o.lanes = 2;
  o.judges = o.rests_to_evaluate = true;
  o.final_checkpoint = true;
  return o;
}

struct resting_master : master {
  resting_master() : master(resting()) { start(); }
  task_reply lane(std::uint32_t which, std::uint64_t rests_at = 0) {
    return it.request_task(which, 1, now, which, rests_at);
  }
  // Each lane makes two of its steps, comes to version 2, and hands back what it has.
  void reach_two() {
    for (std::uint32_t i : {0u, 1u}) {
      auto const t = lane(i);
      REQUIRE(t.kind == task_kind::training);
      CHECK(done(t, i));
      auto const ahead = lane(i);
      CHECK(it.report_task({.worker = i, .incarnation = 1, .lease = ahead.lease, .returned = true}, now) ==
            (ahead.kind == task_kind::training));
    }
  }
  void evaluate_two() {
    for (auto t = lane(0, 2); t.kind == task_kind::evaluation; t = lane(0, 2)) CHECK(done(t, 0, {1}));
    REQUIRE(take<evaluation_done>());
  }
};

}  // namespace

TEST_CASE("lanes: each is leased its own tasks, and the next world deals the rest as the last would have") {
  auto o = replicated(job_type::training_with_evaluation);
  o.lanes = 2;
  o.evaluation_steps = 2;
  master m(o);
  for (std::uint32_t const id : {0u, 1u}) m.join(id), m.enter(id);
  auto const leased = [&](std::uint32_t worker, std::uint32_t lane) {
    auto const t = m.it.request_task(worker, 1, m.now, lane);
    return t.kind == task_kind::training ? std::optional(t.key.index) : std::nullopt;
  };
  // Five tasks: 0, 2 and 4 are the first lane's, whoever asks and however fast.
  CHECK(leased(0, 0) == 0);
  CHECK(leased(0, 0) == 2);
  CHECK(leased(1, 1) == 1);
  m.it.left(role::worker, 1, 1, m.now);
  m.enter(0, 1, copy(2, with_closed(2)));
  REQUIRE(m.of(0));
  CHECK(leased(0, 1) == 3);
  CHECK(leased(0, 0) == 2);
  CHECK(leased(0, 0) == 4);
  CHECK_FALSE(leased(0, 0));
  CHECK_FALSE(leased(0, 1));
  // Evaluations are anybody's.
  m.it.version_reached({m.it.generation(), 4, true, false}, m.now);
  CHECK(m.it.request_task(0, 1, m.now, 0).kind == task_kind::evaluation);
  CHECK(m.it.request_task(0, 1, m.now, 1).kind == task_kind::evaluation);
}

TEST_CASE("workers that rest for an evaluation train on when it has been judged, and not before") {
  resting_master m;
  m.reach_two();
  // It has not been told of yet.
  CHECK(m.it.versions().unannounced(2));
  CHECK(m.lane(0, 2).kind == task_kind::wait);
  CHECK(m.lane(1, 2).rests);
  m.reached(2, true);
  CHECK_FALSE(m.it.versions().unannounced(2));
  m.evaluate_two();
  CHECK(m.lane(1, 2).rests);
  m.it.judged(2, m.now);
  auto const t = m.lane(1, 2);
  CHECK(t.kind == task_kind::training);
  CHECK(t.key.index == 3);
  CHECK(m.lane(0, 2).key.index == 2);
}

TEST_CASE("a job whose workers rest ends at the version that decides it, and a loss of that undoes the end") {
  for (bool lost : {false, true}) {
    resting_master m;
    m.reach_two();
    m.reached(2, true);
    m.evaluate_two();
    m.it.stop(m.now, 2);
    m.it.judged(2, m.now);
    REQUIRE(m.take<ask_version>());
    if (lost) {
      // Nobody has the state that was judged.
      for (std::uint32_t i : {0u, 1u}) m.lose(i);
      CHECK(m.join(2));
      m.enter(2);
      auto const find = m.take<find_restore_point>();
      REQUIRE(find);
      m.it.restore_point_found(find->generation, restore_point{"v1", 1, {}}, m.now);
      CHECK(m.it.request_task(2, 1, m.now, 0).kind == task_kind::training);
      continue;
    }
    m.it.version_announced(1, 2, m.now);
    auto const w = m.take<write_checkpoint>();
    REQUIRE(w);
    m.it.checkpoint_written(1, 2, {}, m.now);
    CHECK(m.it.finished());
    CHECK(m.it.progress().done.tasks_done == 2);
  }
}

TEST_CASE("a version at which workers rest is evaluated although all that had it frozen are lost") {
  resting_master m;
  m.reach_two();
  m.reached(2, true);
  REQUIRE(m.lane(0, 2).kind == task_kind::evaluation);
  // A newcomer copies it, and is the only one left.
  CHECK(m.join(2));
  for (std::uint32_t i : {0u, 1u}) m.enter(i, 1, copy(2, with_closed(2)));
  m.enter(2, 0);
  REQUIRE(m.it.ready());
  for (std::uint32_t i : {0u, 1u}) m.lose(i);
  m.enter(2, 2, copy(2, with_closed(2)));
  REQUIRE(m.it.ready());
  CHECK(m.it.request_task(2, 1, m.now, 0, 2).rests);
  CHECK(m.it.versions().unannounced(2));
  m.reached(2, true);
  CHECK(m.it.request_task(2, 1, m.now, 0, 2).kind == task_kind::evaluation);
}

}  // namespace worlds_closing_test
