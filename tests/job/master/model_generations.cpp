// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/model_generations.hpp"

#include <doctest/doctest.h>

#include "job/master/stated_job.hpp"

namespace model_generations_test {

using namespace edl::master;
using namespace std::chrono_literals;

namespace {

time_point const start{1h};

job_options with_servers() {
  return {.training = {{"t", 16}}, .num_workers = 1, .num_servers = 2, .server_copies = 2};
}
job_options with_copies(std::uint32_t workers) {
  return {.training = {{"t", 16}}, .num_workers = workers, .replicas = true};
}

struct model : stated_job {
  using stated_job::stated_job;

  worker_worlds worlds{duration{}};
  task_queue::options queue{.records_per_task = 4, .minibatch_size = 4};
  roster members{options, job};
  model_versions versions{options, job, worlds, queue, start};
  dispatcher tasks{options, job, versions, queue};
  model_generations it{options, job, members, versions, tasks, worlds, 0, start};

  std::optional<std::uint32_t> join(role of, std::uint32_t id, std::uint64_t heard = 0) {
    join_request const r{.role = of, .id = id, .incarnation = 1, .heard = heard};
    members.join(r, start);
    it.rise_above(r, start);
    return it.joined(r, start);
  }
  std::optional<std::uint32_t> enter(std::uint32_t worker, std::optional<copy_position> copy = {},
                                     std::uint64_t last = 0) {
    return it.enter(worker, {.incarnation = 1, .last = last, .copy = std::move(copy), .suspect = {}}, start);
  }
  void lose_server(std::uint32_t id) {
    members.lose(role::server, id, start);
    it.server_lost(id, start);
  }
  /// Two servers have the first generation's state.
  void configured() {
    for (std::uint32_t const id : {0u, 1u}) join(role::server, id);
    for (std::uint32_t const id : {0u, 1u}) it.server_configured(id, "", {}, start);
    REQUIRE(job.leasing());
  }
};

}  // namespace

TEST_CASE("servers take the job's state once all are there") {
  model m(with_servers());
  m.join(role::server, 0);
  CHECK(m.it.waits_for() == std::vector<std::string>{"server 1 to join"});
  CHECK(m.take<configure_servers>().empty());
  m.join(role::server, 1);
  CHECK(m.take<configure_servers>().size() == 1);
  m.it.server_configured(0, "", {}, start);
  CHECK(m.it.waits_for() == std::vector<std::string>{"server 1 to take the state of generation 1"});
  m.it.server_configured(1, "", {}, start);
  CHECK(m.job.leasing());
  CHECK(m.it.backup_of(0, 0) == 1);
  CHECK_FALSE(m.it.backup_of(1, 0));
}

TEST_CASE("a lost server's state goes on with its backup, and is lost with both") {
  model m(with_servers());
  m.configured();
  m.job.take_commands();
  m.lose_server(0);
  CHECK(m.job.generation() == 2);
  auto const asked = m.take<configure_servers>();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].keep);
  m.lose_server(1);
  CHECK(m.job.generation() == 3);
  CHECK(m.take<find_restore_point>().size() == 1);
}

TEST_CASE("what cannot be taken back ends the job") {
  model m(with_servers());
  m.configured();
  m.lose_server(0);
  m.lose_server(1);
  edl::ledger others;
  others.apply({{{0, 77}, 0, 1}, 4});
  m.it.restore_point_found(restore_point{"/c", 10, others}, start);
  CHECK(m.job.reason().find("cannot go back to '/c'") == 0);
}

TEST_CASE("a generation that a member knows of is below the next") {
  model m(with_servers());
  m.join(role::server, 0, 7);
  CHECK(m.job.generation() == 8);
}

TEST_CASE("a world begins when all have entered it, with the newest copy among them") {
  model m(with_copies(2));
  m.join(role::worker, 0);
  m.join(role::worker, 1);
  m.enter(0, copy_position{.version = 2, .applied = {}, .world = 1});
  CHECK_FALSE(m.it.world_of(0, 1));
  m.enter(1);
  world const* const w = m.it.world_of(0, 1);
  REQUIRE(w);
  CHECK(w->version == 2);
  CHECK(w->members.size() == 2);
  CHECK_FALSE(m.it.world_of(2, 1));
}

TEST_CASE("a worker's loss ends its world, and the others go on") {
  model m(with_copies(2));
  for (std::uint32_t const id : {0u, 1u}) m.join(role::worker, id);
  for (std::uint32_t const id : {0u, 1u}) m.enter(id);
  REQUIRE(m.job.leasing());
  std::uint64_t const first = m.job.generation();
  m.members.lose(role::worker, 1, start);
  CHECK_FALSE(m.it.worker_lost(1, start));
  CHECK(m.job.generation() == first + 1);
  CHECK(m.it.ever_begun());
  m.enter(0, copy_position{.version = 0, .applied = {}, .world = first}, first);
  REQUIRE(m.it.world_of(0, 1));
  CHECK(m.it.world_of(0, 1)->members.size() == 1);
}

}  // namespace model_generations_test
