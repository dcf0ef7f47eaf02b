// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/model_versions.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace model_versions_test {

using namespace edl::master;

namespace {

struct model {
  explicit model(job_options o) : options(std::move(o)) { job.enter(job_phase::running); }

  job_options options;
  job_state job;
  worker_worlds worlds{duration{}};
  model_versions it{options, job, worlds, {.records_per_task = 4, .minibatch_size = 4}, time_point{}};

  void reached(std::uint64_t version, bool evaluate, bool checkpoint) {
    it.reached({1, version, evaluate, checkpoint}, time_point{});
  }
  /// The version under way is evaluated by one worker.
  void evaluated() {
    auto const l = it.evaluations().lease(0, 1, time_point{});
    REQUIRE(l);
    CHECK(it.evaluations().complete(l->task.id, {1.0}, time_point{}));
    it.take_results();
  }
  template <class C>
  std::vector<C> take() {
    std::vector<C> all;
    for (command const& c : job.take_commands())
      if (auto const* one = std::get_if<C>(&c)) all.push_back(*one);
    return all;
  }
};

job_options evaluating() {
  return {.type = job_type::training_with_evaluation,
          .validation = {{"v", 4}},
          .evaluation_steps = 10,
          .checkpoint = true,
          .final_checkpoint = true};
}

}  // namespace

TEST_CASE("a job that only evaluates has something to evaluate") {
  CHECK_THROWS_AS(model({.type = job_type::evaluation_only}), edl::usage_error);
}

TEST_CASE("a frozen version is held until it is evaluated, or written") {
  model m(evaluating());
  m.reached(10, true, true);
  CHECK(m.it.newest() == 10);
  REQUIRE(m.take<write_checkpoint>().size() == 1);
  m.it.written(10, "");
  auto released = m.take<release_frozen>();
  REQUIRE(released.size() == 1);
  CHECK_FALSE(released[0].evaluation);
  m.evaluated();
  released = m.take<release_frozen>();
  REQUIRE(released.size() == 1);
  CHECK(released[0].evaluation);
}

TEST_CASE("nobody holds what is not wanted") {
  model m({.type = job_type::training_only});
  m.reached(10, true, true);
  CHECK(m.take<release_frozen>().size() == 2);
}

TEST_CASE("a checkpoint waits for what evaluations up to it decide") {
  job_options o = evaluating();
  o.judges = true;
  model m(o);
  m.reached(10, true, true);
  m.evaluated();
  CHECK(m.take<write_checkpoint>().empty());
  CHECK(m.it.judged(10));
  CHECK(m.take<write_checkpoint>().size() == 1);
  CHECK_FALSE(m.it.judged(10));
}

TEST_CASE("a job fails with its final checkpoint only") {
  model m(evaluating());
  m.reached(10, false, true);
  m.it.written(10, "no space left");
  CHECK_FALSE(m.job.over());
  m.job.enter(job_phase::closing);
  m.it.last(20, time_point{});
  CHECK(m.it.last_known());
  m.it.written(20, "no space left");
  CHECK(m.job.reason() == "the final checkpoint cannot be written: no space left");
}

TEST_CASE("the last version is not written again where it has a checkpoint") {
  model m(evaluating());
  m.reached(10, false, true);
  m.it.written(10, "");
  m.take<write_checkpoint>();
  m.job.enter(job_phase::closing);
  m.it.last(10, time_point{});
  CHECK(m.take<write_checkpoint>().empty());
  CHECK(m.it.checkpoints().final_version() == 10);
}

TEST_CASE("the next generation knows nothing of versions under way") {
  model m(evaluating());
  m.reached(10, true, true);
  m.reached(20, true, true);
  m.job.enter(job_phase::forming);
  m.it.interrupt();
  m.it.go_back_to(10, false);
  CHECK(m.it.newest() == 10);
  CHECK(m.it.evaluations().idle());
  CHECK_FALSE(m.it.checkpoints().current());
  m.job.take_commands();
  m.it.written(10, "");  // of the generation before
  CHECK(m.take<log_line>().empty());
}

}  // namespace model_versions_test
