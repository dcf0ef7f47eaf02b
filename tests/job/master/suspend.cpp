// SPDX-License-Identifier: Apache-2.0
// A job ends so that it can go on later, from whatever it is doing.
#include <doctest/doctest.h>

#include <string>

#include "job/master/driven_master.hpp"

namespace suspend_test {

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Twenty records in tasks of four, in minibatches of two.
job_options options(bool replicas, std::uint32_t servers) {
  job_options o;
  o.training = {{"t", 20}};
  o.validation = {{"v", 8}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.shuffle = false;
  o.num_workers = 2;
  o.num_servers = servers;
  o.replicas = replicas;
  o.checkpoint = o.final_checkpoint = true;
  return o;
}

edl::platform::findings running(std::vector<std::uint32_t> const& workers,
                                std::vector<std::uint32_t> const& servers, std::uint32_t next_worker) {
  edl::platform::findings all{.running = {}, .next_worker = next_worker};
  for (std::uint32_t const id : workers) all.running.push_back({role::worker, id});
  for (std::uint32_t const id : servers) all.running.push_back({role::server, id});
  return all;
}

ledger tasks_done(std::uint32_t n) {
  ledger l;
  if (n > 0) l.set_closed(0, 0, n);
  return l;
}

struct master : driven_master {
  using driven_master::driven_master;

  void join_servers(std::uint32_t n, std::uint64_t held = 0) {
    for (std::uint32_t id = 0; id < n; ++id)
      CHECK(it.join({role::server, id, 1, {}, 5, held, held ? std::vector{id} : std::vector<std::uint32_t>{}},
                    now)
                .accepted);
  }
  void join_worker(std::uint32_t id) { CHECK(it.join({role::worker, id, 1, {}, 5}, now).accepted); }

  void start_servers() {
    join_servers(2);
    join_worker(0);
    configured();
    CHECK(it.ready());
  }

  void start_world() {
    for (std::uint32_t id : {0, 1}) join_worker(id);
    for (std::uint32_t id : {0, 1}) enter(id);
    CHECK(it.ready());
  }

  // The rest of a suspension: the state that all have in common is told and written.
  void write(std::uint64_t version, std::string const& error = {}) {
    auto const asked = take<ask_version>();
    REQUIRE(asked);
    CHECK(asked->generation == it.generation());
    it.version_announced(asked->generation, version, now);
    auto const w = take<write_checkpoint>();
    REQUIRE(w);
    CHECK((w->final && w->version == version));
    CHECK_FALSE(it.over());
    it.checkpoint_written(w->generation, version, error, now);
    CHECK(take<suspend_job>());
    CHECK(it.suspended());
    CHECK_FALSE(take<finish_job>());
    CHECK_FALSE(take<fail_job>());
  }
};

}  // namespace

TEST_CASE("with servers: what is leased is void, and what all servers have is written") {
  master m(options(false, 2));
  m.start_servers();
  CHECK(m.done(m.ask()));
  auto const held = m.ask();
  CHECK(held.kind == task_kind::training);
  auto const before = m.it.generation();
  m.it.suspend(m.now);
  m.it.suspend(m.now);  // told again
  CHECK(m.it.generation() == before + 1);
  CHECK_FALSE(m.done(held));
  CHECK(m.configured(tasks_done(1), 3).keep);
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(m.it.scale({3, {}}, m.now) == "the job is being suspended");
  m.write(3);
  CHECK(m.ask().kind == task_kind::finished);
  CHECK(m.it.over());
  CHECK_FALSE(m.it.finished());
}

TEST_CASE("without servers: the members agree on the newest copy, which is written") {
  master m(options(true, 0));
  m.start_world();
  CHECK(m.done(m.ask()));
  CHECK(m.ask().kind == task_kind::training);
  m.it.suspend(m.now);
  for (std::uint32_t id : {0, 1}) m.enter(id, 1, copy_position{id + 2u, tasks_done(id + 1), 1});
  CHECK(m.it.ready());
  CHECK(m.it.tasks()->done().records_done == 8);
  CHECK(m.ask().kind == task_kind::wait);
  m.write(3);
}

TEST_CASE("during an evaluation, and at the job's end, no result is waited for") {
  auto o = options(false, 2);
  o.type = job_type::training_with_evaluation;
  o.evaluation_steps = 2;
  master m(o);
  m.start_servers();
  bool ends = false;
  SUBCASE("of a version on the way") {
    m.it.version_reached({m.it.generation(), 2, true, false}, m.now);
    CHECK(m.ask().kind == task_kind::evaluation);
  }
  SUBCASE("of the last") {
    ends = true;
    for (auto t = m.ask(); t.kind == task_kind::training; t = m.ask()) CHECK(m.done(t));
    auto const asked = m.take<ask_version>();
    REQUIRE(asked);
    m.it.version_announced(asked->generation, 10, m.now);
    m.take<write_checkpoint>();
    CHECK(m.ask().kind == task_kind::evaluation);
  }
  m.it.suspend(m.now);
  m.configured(tasks_done(ends ? 5 : 0), ends ? 10 : 2);
  m.write(ends ? 10 : 2);
}

TEST_CASE("amid a change of servers the state is waited for") {
  master m(options(false, 2));
  m.start_servers();
  CHECK(m.it.scale({{}, 1}, m.now).empty());
  CHECK_FALSE(m.it.ready());
  m.it.suspend(m.now);
  CHECK_FALSE(m.it.over());
  m.configured(tasks_done(2), 5);
  m.write(5);
}

TEST_CASE("at the start nothing is trained, and nothing is waited for") {
  SUBCASE("with servers") {
    master m(options(false, 2));
    m.it.suspend(m.now);
    CHECK(m.take<suspend_job>());
    CHECK_FALSE(m.said("is lost"));
  }
  SUBCASE("without") {
    master m(options(true, 0));
    m.join_worker(0);
    m.enter(0);
    m.it.suspend(m.now);
    CHECK(m.take<suspend_job>());
    CHECK_FALSE(m.said("is lost"));
  }
  SUBCASE("and without checkpoints nothing is kept") {
    auto o = options(false, 2);
    o.final_checkpoint = false;
    master m(o);
    m.start_servers();
    m.it.suspend(m.now);
    CHECK(m.take<suspend_job>());
  }
}

TEST_CASE("state that does not come in time is left to the checkpoint before, and storage that fails, too") {
  SUBCASE("servers that were lost") {
    master m(options(false, 2));
    m.start_servers();
    m.it.left(role::server, 1, 1, m.now);
    m.it.suspend(m.now);
    CHECK(m.take<suspend_job>());
    CHECK(m.said("the training since the newest checkpoint is lost"));
  }
  SUBCASE("a member that hangs") {
    master m(options(true, 0));
    m.start_world();
    m.it.suspend(m.now);
    m.enter(0, 1, copy_position{2, tasks_done(1), 1});
    m.pass(seconds(20));
    CHECK(m.it.ready());  // it goes on without it
    m.write(2);
  }
  SUBCASE("servers that do not answer") {
    master m(options(false, 2));
    m.start_servers();
    m.it.suspend(m.now);
    m.pass(seconds(29));
    CHECK_FALSE(m.it.over());
    m.pass(seconds(2));
    CHECK(m.take<suspend_job>());
    CHECK(m.said("do not tell it: the training since the newest checkpoint is lost"));
  }
  SUBCASE("storage") {
    master m(options(false, 2));
    m.start_servers();
    m.it.suspend(m.now);
    m.configured(tasks_done(1), 3);
    m.write(3, "No space left on device");
    CHECK(m.said("the newest state cannot be written: No space left on device"));
  }
  SUBCASE("storage that is slow is waited for") {
    master m(options(false, 2));
    m.start_servers();
    m.it.suspend(m.now);
    m.configured(tasks_done(1), 3);
    m.it.version_announced(m.take<ask_version>()->generation, 3, m.now);
    m.pass(seconds(120));
    CHECK_FALSE(m.it.over());
  }
}

TEST_CASE("a master without a journal goes on with what it finds") {
  SUBCASE("servers keep their state, workers their ids") {
    master m(options(false, 2));
    m.it.adopt(running({3, 7}, {0, 1}, 9), m.now);
    m.join_servers(2, 4);
    CHECK(m.configured(tasks_done(2), 6).keep);
    for (std::uint32_t id : {3, 7}) m.join_worker(id);
    CHECK(m.it.tasks()->done().records_done == 8);
    CHECK(m.ask(7).key.index == 2);
    m.pass(seconds(100));
    CHECK_FALSE(m.take<replace_process>());
    CHECK_FALSE(m.take<start_process>());
    m.it.exited(role::worker, 7, exit_kind::preempted, "was deleted", m.now);
    CHECK(m.take<replace_process>()->with == 9);
  }
  SUBCASE("members keep their copies") {
    master m(options(true, 0));
    m.it.adopt(running({3, 7}, {}, 8), m.now);
    for (std::uint32_t id : {3, 7}) m.join_worker(id);
    m.enter(3, 5, copy_position{8, tasks_done(2), 5});
    m.enter(7, 5, copy_position{9, tasks_done(3), 5});
    CHECK(m.it.ready());
    CHECK(m.it.tasks()->done().records_done == 12);
    CHECK_FALSE(m.take<find_restore_point>());
  }
  SUBCASE("who does not come is replaced, though not at once") {
    master m(options(true, 0));
    m.it.adopt(running({0, 5}, {}, 6), m.now);
    m.join_worker(0);
    m.pass(seconds(59));
    CHECK_FALSE(m.take<replace_process>());
    m.pass(seconds(3));
    auto const r = m.take<replace_process>();
    REQUIRE(r);
    CHECK((r->id == 5 && r->with == 6));
  }
  SUBCASE("fewer than there are to be are made up for, with new ids") {
    master m(options(true, 0));
    m.it.adopt(running({5}, {}, 8), m.now);
    auto const lines = m.it.remembered().workers.lines;
    REQUIRE(lines.size() == 2);
    CHECK((lines[0].id == 5 && lines[1].id == 8));
  }
  SUBCASE("more than there are to be stay") {
    master m(options(true, 0));
    m.it.adopt(running({1, 2, 3, 4}, {}, 5), m.now);
    CHECK(m.it.remembered().workers.lines.size() == 4);
    CHECK_FALSE(m.take<stop_process>());
  }
  SUBCASE("where the next master is to suspend the job, it waits for those that have the state") {
    master m(options(true, 0));
    m.it.adopt(running({0, 1}, {}, 2), m.now);
    m.it.suspend(m.now);
    CHECK_FALSE(m.it.over());
    m.pass(seconds(2));
    for (std::uint32_t id : {0, 1}) m.join_worker(id);
    for (std::uint32_t id : {0, 1}) m.enter(id, 5, copy_position{9, tasks_done(3), 5});
    m.write(9);
  }
}

TEST_CASE("who is named leaves first, the others of that size stay") {
  master m(options(true, 0));
  auto const stopped = [&] {
    std::vector<std::uint32_t> ids;
    while (auto const c = m.take<stop_process>()) ids.push_back(c->id);
    return ids;
  };
  CHECK(m.it.scale({5, {}}, m.now).empty());
  CHECK(m.it.scale({3, {}, {1, 0, 77}}, m.now).empty());
  CHECK(stopped() == std::vector<std::uint32_t>{1, 0});
  m.seen.clear();
  m.it.take_commands();
  // Another in the place of one that is to go.
  CHECK(m.it.scale({3, {}, {2}}, m.now).empty());
  CHECK(stopped() == std::vector<std::uint32_t>{2});
  CHECK(m.take<start_process>()->id == 5);
  CHECK(m.it.scale({2, {}, {}}, m.now).empty());
  CHECK(stopped() == std::vector<std::uint32_t>{5});
}

}  // namespace suspend_test
