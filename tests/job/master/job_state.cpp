// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/job_state.hpp"

#include <doctest/doctest.h>

namespace job_state_test {

using namespace edl::master;

TEST_CASE("a job leases tasks from when it runs until it is over") {
  job_state job;
  CHECK(job.forming());
  CHECK_FALSE(job.ready());
  job.enter(job_phase::configuring);
  CHECK_FALSE(job.ready());
  for (job_phase const p : {job_phase::running, job_phase::closing}) {
    job.enter(p);
    CHECK(job.ready());
    CHECK(job.leasing());
  }
  job.finish();
  CHECK(job.over());
  CHECK_FALSE(job.leasing());
  auto const commands = job.take_commands();
  CHECK(commands.size() == 1);
  CHECK(std::holds_alternative<finish_job>(commands[0]));
  CHECK(job.take_commands().empty());
}

TEST_CASE("the first reason that ends a job is the one that is told") {
  job_state job;
  job.fail("no space left");
  job.fail("all workers failed");
  CHECK(job.reason() == "no space left");
  CHECK(job.take_commands().size() == 1);
}

TEST_CASE("what a suspended job loses is said") {
  job_state job;
  job.suspend(time_point{});
  CHECK(job.suspending());
  job.end_suspended("nobody tells it");
  auto const commands = job.take_commands();
  REQUIRE(commands.size() == 2);
  CHECK(std::get<log_line>(commands[0]).text ==
        "nobody tells it: what is trained since the newest checkpoint is lost");
  CHECK(job.phase() == job_phase::suspended);
}

TEST_CASE("generations only grow") {
  job_state job;
  job.raise_generation(7);
  job.begin_generation();
  CHECK(job.generation() == 8);
}

}  // namespace job_state_test
