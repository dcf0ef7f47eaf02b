// SPDX-License-Identifier: Apache-2.0
// What fails too often or is too slow in a job with servers.
#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "job/master/master_with_servers.hpp"

namespace coordinator_failures_test {

using namespace master_with_servers;

TEST_CASE("when all workers fail the job stops with the reason, instead of starting them for ever") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  int started = 0;
  std::vector<std::uint32_t> alive{0, 1};
  while (!alive.empty() && started < 100) {
    std::uint32_t const id = alive.back();
    alive.pop_back();
    m.it.exited(role::worker, id, exit_kind::failed, "libcuda.so not found", m.now);
    while (auto const r = m.take<replace_process>()) {
      m.join(role::worker, r->with);
      alive.push_back(r->with);
      ++started;
    }
  }
  CHECK(started == 2);
  CHECK(m.it.failed());
  CHECK(m.it.reason() == "all workers failed: 4 failures, all of them: libcuda.so not found");
  CHECK(m.take<fail_job>());
  CHECK(m.ask().kind == task_kind::finished);
}

TEST_CASE("who fails again is replaced after a pause, and the log says how long and why") {
  auto o = small();
  o.worker_failures = 3;
  master m(o);
  m.start();
  char const* const why = "was killed because memory ran out";
  m.it.exited(role::worker, 0, exit_kind::failed, why, m.now);
  auto const first = m.take<replace_process>();
  REQUIRE(first);
  m.join(role::worker, first->with);
  m.it.exited(role::worker, first->with, exit_kind::failed, why, m.now);
  CHECK(
      m.said("worker 2 failed again, and another takes its place in 1 s: was killed because memory ran out"));
  m.it.tick(m.now += seconds(1));
  CHECK(!m.take<replace_process>());
  m.it.tick(m.now += seconds(1));
  auto const second = m.take<replace_process>();
  REQUIRE(second);
  CHECK(second->with == 3);
}

TEST_CASE("a server that fails too often ends the job") {
  auto o = small();
  o.server_failures = 1;
  master m(o);
  m.start();
  m.it.exited(role::server, 0, exit_kind::failed, "out of memory", m.now);
  CHECK(m.take<replace_process>()->with == 0);
  m.join(role::server, 0, 2);
  CHECK(!m.it.over());
  m.it.exited(role::server, 0, exit_kind::failed, "out of memory", m.now);
  CHECK(m.it.reason() == "server 0 failed too often: 2 failures, all of them: out of memory");
}

TEST_CASE("a task that fails too often ends the job, in training and in evaluation") {
  auto o = small(job_type::training_with_evaluation);
  o.max_retries = 1;
  o.evaluation_steps = 1;
  for (bool evaluation : {false, true}) {
    master m(o);
    m.start();
    if (evaluation) m.it.version_reached({1, 1, true, false}, m.now);
    auto const t = m.ask();
    CHECK(t.kind == (evaluation ? task_kind::evaluation : task_kind::training));
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .error = "torn"}, m.now));
    CHECK(m.it.failed());
    CHECK(m.it.reason() == std::string(evaluation ? "evaluation of version 1: " : "") +
                               "task 0 of epoch 0 ('" + (evaluation ? "v" : "t") +
                               "', records [0, 4)) failed on worker 0: torn");
  }
}

TEST_CASE("sums of another number count as an error of the task") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 1;
  master m(o);
  m.start();
  m.it.version_reached({1, 1, true, false}, m.now);
  auto const a = m.ask(), b = m.ask();
  CHECK(m.done(a, 0, {1, 2}));
  CHECK(m.done(b, 0, {1}));
  CHECK(!m.it.versions().evaluations().idle());
  CHECK(m.done(m.ask(), 0, {1, 2}));
  CHECK(m.take<evaluation_done>()->result.totals == std::vector<double>{2, 4});
}

TEST_CASE("a slow worker loses its task, or with replace_slow its place") {
  for (bool replace : {false, true}) {
    auto o = small();
    o.silence = std::chrono::hours(1);
    o.replace_slow = replace;
    master m(o);
    m.start();
    m.join(role::worker, 1);
    auto const t = m.ask();
    m.now += seconds(301);
    m.it.tick(m.now);
    CHECK(m.it.workers().known(0, 1) == !replace);
    CHECK(m.ask(1).key == t.key);
    CHECK(!m.done(t));
    m.now += seconds(11);
    m.it.tick(m.now);
    auto const r = m.take<replace_process>();
    CHECK(r.has_value() == replace);
  }
}

TEST_CASE("a worker that lives and gets no further is given up, and its task goes to another") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  auto const t = m.ask();
  auto const live = [&](int time, std::uint64_t position, std::uint64_t other) {
    for (int i = 0; i < time; ++i) {
      m.now += seconds(1);
      m.it.heartbeat(role::worker, 0, 1, {.position = position}, m.now);
      m.it.heartbeat(role::worker, 1, 1, {.position = other}, m.now);
      for (std::uint32_t const id : {0, 1}) m.it.heartbeat(role::server, id, 1, {}, m.now);
      m.it.tick(m.now);
    }
  };
  live(60, 5, 4);  // the other waits all the time
  CHECK(m.it.workers().known(0, 1));
  live(2, 5, 4);
  CHECK_FALSE(m.it.workers().known(0, 1));
  CHECK(m.it.workers().known(1, 1));
  CHECK(m.said("worker 0 is lost: it lives, but has been at one minibatch for 61 s; 1 task goes to others"));
  CHECK(m.ask(1).key == t.key);
  live(11, 5, 4);
  CHECK(m.take<replace_process>()->id == 0);
}

TEST_CASE("two slow workers of one window hand over one after the other, and nobody does without the flag") {
  for (bool const leaves : {true, false}) {
    CAPTURE(leaves);
    auto o = small();
    o.num_workers = 6;
    o.leave_bad_nodes = leaves;
    master m(o);
    m.start();
    for (std::uint32_t id = 1; id < 6; ++id) m.join(role::worker, id);
    std::uint64_t passes = 0;
    auto const live = [&](int time) {
      for (int i = 0; i < time; ++i) {
        m.now += seconds(1);
        ++passes;
        for (auto const& [id, w] : std::map(m.it.workers().all())) {
          float const pass = id == 1 || id == 4 ? 2.0f : 1.0f;
          m.it.heartbeat(role::worker, id, 1,
                         {.position = 2 * passes, .pass = pass, .trained = {0, passes, passes}}, m.now);
        }
        for (std::uint32_t const id : {0, 1}) m.it.heartbeat(role::server, id, 1, {}, m.now);
        m.it.tick(m.now);
      }
    };
    auto const stopped = [&] {
      std::vector<std::uint32_t> ids;
      for (auto const& c : m.take_all<stop_process>()) ids.push_back(c.id);
      return ids;
    };
    using list = std::vector<std::uint32_t>;
    live(200);
    CHECK(m.said("worker 1 is slow: its passes take 2.0 times as long as its siblings'"));
    CHECK(m.said("worker 4 is slow: its passes take 2.0 times as long as its siblings'"));
    CHECK(stopped() == (leaves ? list{1} : list{}));
    if (!leaves) continue;
    CHECK(m.take<avoid_place>()->worker == 1);
    CHECK(m.take<start_process>()->id == 6);
    m.it.left(role::worker, 1, 1, m.now);
    live(5);
    CHECK(stopped().empty());  // nobody has come for it yet
    m.join(role::worker, 6);
    live(2);
    CHECK(stopped() == list{4});
    CHECK(m.take<avoid_place>()->worker == 4);
  }
}

}  // namespace coordinator_failures_test
