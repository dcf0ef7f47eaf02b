// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/dispatcher.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace dispatcher_test {

using namespace edl::master;
using edl::task_kind;
using namespace std::chrono_literals;

namespace {

job_options training(job_options o = {}) {
  o.training = {{"t", 16}};
  return o;
}

struct work {
  explicit work(job_options o) : options(std::move(o)) { job.enter(job_phase::running); }

  job_options options;
  job_state job;
  worker_worlds worlds{duration{}};
  task_queue::options queue{.records_per_task = 4, .minibatch_size = 4};
  model_versions versions{options, job, worlds, queue, time_point{}};
  dispatcher it{options, job, versions, queue};

  task_reply ask(std::uint32_t worker = 0, std::uint64_t rests_at = 0) {
    return it.request(worker, 1, time_point{}, 0, rests_at);
  }
  bool done(task_reply const& t, std::uint32_t worker = 0) {
    return it.report(
        {.worker = worker, .incarnation = 1, .lease = t.lease, .metrics = std::vector<double>(1)},
        time_point{});
  }
  bool failed(task_reply const& t, std::string why) {
    return it.report({.incarnation = 1, .lease = t.lease, .error = std::move(why)}, time_point{});
  }
};

}  // namespace

TEST_CASE("there is something to work on") { CHECK_THROWS_AS(work(job_options{}), edl::usage_error); }

TEST_CASE("a task is done once, by who has it") {
  work w(training());
  task_reply const t = w.ask();
  CHECK(t.kind == task_kind::training);
  CHECK_FALSE(w.done(t, 1));
  CHECK(w.done(t));
  CHECK_FALSE(w.done(t));
  CHECK(w.it.records_done() == 4);
}

TEST_CASE("what a lost worker had goes first to others") {
  work w(training());
  task_reply const t = w.ask(0);
  CHECK(w.it.lost(0) == 1);
  task_reply const again = w.ask(1);
  CHECK(again.key == t.key);
  CHECK(again.resumed);
}

TEST_CASE("evaluations come before training, but not twice to who returned one") {
  job_options o = training({.type = job_type::training_with_evaluation, .validation = {{"v", 4}}});
  o.evaluation_steps = 10;
  work w(o);
  w.versions.reached({1, 10, true, false}, time_point{});
  task_reply const t = w.ask();
  CHECK(t.kind == task_kind::evaluation);
  CHECK(w.it.report({.incarnation = 1, .lease = t.lease, .returned = true}, time_point{}));
  CHECK(w.ask(0).kind == task_kind::training);
  CHECK(w.ask(1).kind == task_kind::evaluation);
}

TEST_CASE("nobody makes a step before a version has been evaluated, where workers rest for it") {
  job_options o = training({.type = job_type::training_with_evaluation, .validation = {{"v", 4}}});
  o.evaluation_steps = 10;
  o.rests_to_evaluate = true;
  work w(o);
  CHECK(w.ask(0, 10).rests);
  CHECK_FALSE(w.ask(0, 0).rests);
}

TEST_CASE("a task that fails too often ends the job, and the last evaluation does not") {
  job_options o = training({.type = job_type::training_with_evaluation, .validation = {{"v", 4}}});
  o.evaluation_steps = 10;
  work w(o);
  w.queue.max_retries = 3;
  for (int i = 0; i < 3; ++i) {
    REQUIRE_FALSE(w.job.over());
    task_reply t = w.ask();
    while (t.key.index != 0) t = w.ask();
    CHECK(w.failed(t, "torn"));
  }
  CHECK(w.job.reason().find("torn") != std::string::npos);

  work e(o);
  e.job.enter(job_phase::closing);
  e.versions.last(10, time_point{});
  for (int i = 0; i < 3; ++i) {
    task_reply t = e.ask();
    while (t.kind != task_kind::evaluation) t = e.ask();
    CHECK(e.failed(t, "torn"));
  }
  CHECK_FALSE(e.job.over());
  CHECK(e.versions.unevaluated().find("evaluation of version 10") == 0);
}

TEST_CASE("who is slow loses its task, or is to be replaced") {
  for (bool const replaced : {false, true}) {
    job_options o = training();
    o.replace_slow = replaced;
    work w(o);
    w.ask();
    CHECK(w.it.recover_slow(time_point{} + 299s).empty());
    auto const slow = w.it.recover_slow(time_point{} + 301s);
    CHECK(slow == (replaced ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{}));
    CHECK(w.it.tasks()->leased() == std::size_t(replaced));
  }
}

TEST_CASE("what was stopped goes on only from before it was") {
  work w(training());
  w.it.stop(10);
  CHECK(w.it.finished());
  w.it.interrupt();
  w.it.go_back_to(10, {});
  CHECK(w.it.finished());
  w.it.go_back_to(9, {});
  CHECK_FALSE(w.it.finished());
}

}  // namespace dispatcher_test
