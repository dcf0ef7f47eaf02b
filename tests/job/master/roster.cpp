// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/roster.hpp"

#include <doctest/doctest.h>

#include "job/master/stated_job.hpp"

namespace roster_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

time_point const start{1h};

struct members : stated_job {
  explicit members(job_options o = {.num_workers = 2, .num_servers = 1}) : stated_job(std::move(o)) {}

  roster it{options, job};

  void join(role of, std::uint32_t id, time_point now = start) { it.join({of, id, 1, {}, 5}, now); }
};

}  // namespace

TEST_CASE("who does not belong to the job is refused, with the reason") {
  members m({.flags = {"--seed=1"}});
  m.join(role::worker, 0);
  auto const refusal = [&](join_request const& r) { return m.it.refusal(r, 1); };
  CHECK(refusal({role::worker, 1, 1, {}, 5}) == "");
  CHECK(refusal({role::server, 1, 1, {}, 5}).find("the job has 1 server") == 0);
  CHECK(refusal({role::worker, roster::most_workers, 1, {}, 5}) == "its id is out of range");
  CHECK(refusal({role::worker, 1, 1, {}, 6}).find("its model (layout") == 0);
  CHECK(refusal({.id = 1, .layout = 5, .flags = {"--seed=2"}}).find("it was started with --seed=2") == 0);
  CHECK(refusal({.id = 1, .layout = 5, .heard = ~std::uint64_t{0}}) ==
        "the generation that it knows of is out of range");
  m.it.lose(role::worker, 0, start);
  CHECK(refusal({role::worker, 0, 1, {}, 5}) == "it has been given up: start a new process");
}

TEST_CASE("a heartbeat tells whether its process has trained since") {
  members m;
  m.join(role::worker, 0);
  auto const beat = [&](vitals const& v) { return m.it.heartbeat(role::worker, 0, 1, v, start); };
  CHECK(beat({.records = 8}).trained);
  CHECK_FALSE(beat({.records = 8}).trained);
  CHECK(m.it.minibatches() == 1);
  CHECK_FALSE(beat({.records = 8, .position = 2}).trained);  // a minibatch of an evaluation
  CHECK(m.it.minibatches() == 2);
  CHECK(m.it.heartbeat(role::worker, 0, 2, {}, start).reply.stranger);
}

TEST_CASE("who is silent is told, but not when nobody is heard") {
  members m;
  m.join(role::worker, 0);
  m.join(role::worker, 1);
  m.it.excuse(start);
  // A quarter of a second at a time: a longer pause of the master's is held against nobody.
  time_point now = start;
  for (; now < start + 6s; now += 250ms) {
    m.it.heartbeat(role::worker, 0, 1, {}, now);
    m.it.excuse(now);
  }
  auto const silent = m.it.silent(role::worker, now);
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].id == 1);
  for (auto const until = now + 4s; now < until; now += 250ms) m.it.excuse(now);
  CHECK(m.it.cut_off(now));
  CHECK(m.it.isolated());
  CHECK(m.it.silent(role::worker, now).empty());
}

TEST_CASE("who ends is replaced until its budget is used up") {
  members m({.num_workers = 1, .num_servers = 1, .worker_failures = 1, .server_failures = 0});
  CHECK(m.it.ended(role::worker, 0, exit_kind::failed, "torn", {}) == "");
  auto const replaced = m.take<replace_process>();
  REQUIRE(replaced.size() == 1);
  CHECK(replaced[0].with == 1);
  CHECK(m.it.ended(role::worker, 1, exit_kind::failed, "torn", {}) ==
        "all workers failed: 2 failures, all of them: torn");
  CHECK(m.it.ended(role::server, 0, exit_kind::failed, "torn", {}) == "server 0 failed too often: torn");
}

TEST_CASE("a roster of another size starts and stops processes") {
  members m;
  m.it.scale_workers(3, {});
  auto const started = m.take<start_process>();
  REQUIRE(started.size() == 1);
  CHECK(started[0].id == 2);
  m.it.scale_workers(1, {0});
  auto const stopped = m.take<stop_process>();
  REQUIRE(stopped.size() == 2);
  CHECK(stopped[0].id == 0);
  CHECK(stopped[1].id == 2);
  CHECK(m.it.lines(role::worker).size() == 1);
}

}  // namespace roster_test
