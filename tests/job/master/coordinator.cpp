// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/coordinator.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "job/master/master_with_servers.hpp"

namespace coordinator_test {

using namespace master_with_servers;

TEST_CASE("tasks are leased when all servers have taken their state, and not before") {
  master m(small());
  CHECK(m.join(role::worker, 0));
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(m.join(role::server, 1));
  CHECK(!m.take<configure_servers>());
  CHECK(m.join(role::server, 0));
  auto const c = m.take<configure_servers>();
  REQUIRE(c);
  CHECK(c->generation == 1);
  CHECK(c->restore == "");
  CHECK(m.ask().kind == task_kind::wait);
  m.it.server_configured(0, 1, 1, {}, m.now);
  m.it.server_configured(0, 1, 1, {}, m.now);  // told twice
  m.it.server_configured(1, 9, 1, {}, m.now);  // no such process
  m.it.server_configured(1, 1, 0, {}, m.now);  // of another generation
  CHECK(!m.it.ready());
  m.it.server_configured(1, 1, 1, {}, m.now);
  CHECK(m.it.ready());
  auto const t = m.ask();
  CHECK(t.kind == task_kind::training);
  CHECK(t.range == task_range{0, 0, 4});
  CHECK(t.generation == 1);
  CHECK(m.said("Starting epoch 0"));
  CHECK(m.said("5 tasks created with total of 20 records."));
  CHECK(m.done(t));
  CHECK(m.said("Task:1 completed, 4 remaining tasks"));
  CHECK(!m.done(t));
}

TEST_CASE("a job without evaluation and checkpoints is finished when its version is known") {
  master m(small());
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  CHECK(!m.it.finished());
  CHECK(m.announce(10));
  CHECK(m.it.finished());
  CHECK(m.take<finish_job>());
  CHECK(!m.take<write_checkpoint>());
  CHECK(m.it.progress().version == 10);
  CHECK(m.ask().kind == task_kind::finished);
  CHECK(m.it.heartbeat(role::worker, 0, 1, {}, m.now).finished);
  CHECK(m.it.progress().done.records_done == 20);
  auto const late = m.it.join({role::worker, 9, 1, {}, 5}, m.now);
  CHECK(!late.accepted);
  CHECK(late.over);
}

TEST_CASE("a job is not finished before its model is written, of a generation that lasts so long") {
  auto o = small();
  o.writes_model = true;
  master m(o);
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  CHECK(m.announce(10));
  CHECK(m.take<write_model>()->generation == 1);
  m.it.tick(m.now);
  CHECK_FALSE(m.take<write_model>());
  m.it.left(role::server, 1, 1, m.now);
  m.it.model_written(1, {});
  CHECK_FALSE(m.it.over());
  CHECK(m.join(role::server, 1, 2));
  restore_point all{"version-10", 10, {}};
  all.applied.set_closed(0, 0, 5);
  m.it.restore_point_found(2, all, m.now);
  m.configured(2);
  CHECK(m.announce(10));
  CHECK(m.take<write_model>()->generation == 2);
  SUBCASE("it is") {
    m.it.model_written(2, {});
    CHECK(m.it.finished());
    CHECK(m.take<finish_job>());
    CHECK(m.it.remembered().finished);
  }
  SUBCASE("it cannot be") {
    m.it.model_written(2, "No space left on device");
    CHECK(m.it.reason() == "No space left on device");
    CHECK_FALSE(m.it.remembered().finished);
  }
}

TEST_CASE("a worker that waits gets what is recovered later") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  task_reply last;
  for (int i = 0; i < 5; ++i) last = m.ask(1);
  CHECK(m.ask(0).kind == task_kind::wait);
  m.it.left(role::worker, 1, 1, m.now);
  CHECK(!m.done(last, 1));
  CHECK(m.ask(1).kind == task_kind::wait);  // the zombie gets nothing
  CHECK(!m.it.heartbeat(role::worker, 1, 1, {}, m.now).known);
  CHECK(m.it.join({role::worker, 1, 1, {}, 5}, m.now).given_up);
  CHECK_FALSE(m.it.join({role::worker, 1, 2, {}, 6}, m.now).given_up);
  auto const t = m.ask(0);
  CHECK(t.kind == task_kind::training);
  CHECK(t.resumed);
  CHECK(m.done(t));
  CHECK(m.work(task_kind::training) == 4);
  CHECK(m.announce(10));
  CHECK(m.it.finished());
}

TEST_CASE("without servers the model is ready at once") {
  auto o = small();
  o.num_servers = 0;
  o.start = {"version-3", 3, {}};
  o.start.applied.set_closed(0, 0, 3);
  master m(o);
  CHECK(m.it.ready());
  CHECK(!m.take<configure_servers>());
  CHECK(m.join(role::worker, 0));
  CHECK(m.work(task_kind::training) == 2);
  CHECK(m.announce(7));
  CHECK(m.it.finished());
  CHECK(!m.join(role::server, 0));
}

TEST_CASE("a job that goes on is in the epoch that it had begun, before anybody has a task") {
  auto o = small();
  o.num_servers = 0;
  o.num_epochs = 3;
  o.start = {"version-8", 8, {}};
  o.start.applied.set_closed(0, 0, 5);
  o.start.applied.set_closed(1, 0, 3);
  CHECK(master(o).it.progress().epoch == 1);
}

TEST_CASE("a silent worker is lost after five seconds, and replaced at once") {
  master m(small());
  m.start();
  auto const t = m.ask();
  m.now += milliseconds(5001);
  for (std::uint32_t id : {0, 1}) m.it.heartbeat(role::server, id, 1, {}, m.now);
  m.it.tick(m.now);
  CHECK(!m.it.workers().find(0));
  CHECK(!m.done(t));
  auto const r = m.take<replace_process>();
  REQUIRE(r);
  CHECK(r->role == role::worker);
  CHECK(r->id == 0);
  CHECK(r->with == 2);
  CHECK(!m.join(role::worker, 0));  // given up, for good
  CHECK(m.join(role::worker, 2));
  CHECK(m.ask(2).key == t.key);
}

TEST_CASE("a master that was cut off blames nobody for what could not be told meanwhile") {
  master m(small());
  m.start();
  auto const t = m.ask();
  auto const live = [&](int quarters, std::vector<std::uint32_t> const& servers, bool worker) {
    for (int i = 0; i < quarters; ++i) {
      m.now += milliseconds(250);
      for (std::uint32_t const id : servers) m.it.heartbeat(role::server, id, 1, {}, m.now);
      if (worker) m.it.heartbeat(role::worker, 0, 1, {}, m.now);
      m.it.tick(m.now);
    }
  };
  live(8, {0, 1}, true);
  live(80, {}, false);  // 20 s
  // Connections end one after the other, too, before the first is heard again.
  m.it.hung_up(role::worker, 0, 1, m.now);
  CHECK(m.it.workers().all().size() == 1);
  CHECK(m.it.servers().all().size() == 2);
  CHECK(m.it.generation() == 1);
  CHECK(
      m.said("no member has been heard for 2.5 s: this master may be cut off, and gives up no member for up "
             "to 60 s"));
  CHECK(m.it.waits_for(m.now).find("this master may be cut off") != std::string::npos);
  SUBCASE("all are heard again") {
    live(40, {0, 1}, true);
    CHECK(
        m.said("members are heard again after 20.2 s; their silence in between does not count as a failure"));
    CHECK(m.it.generation() == 1);
    CHECK(m.done(t));
    CHECK(!m.take<replace_process>());
  }
  SUBCASE("who needs as long as the outage was to be heard again is not lost") {
    live(76, {0, 1}, false);
    live(20, {0, 1}, true);
    CHECK(m.done(t));
    CHECK(!m.take<replace_process>());
  }
  SUBCASE("who is heard again, and then no more, is lost after the usual time") {
    live(4, {0, 1}, true);
    live(16, {0, 1}, false);
    CHECK(m.it.workers().find(0));
    live(4, {0, 1}, false);
    CHECK_FALSE(m.it.workers().find(0));
  }
  SUBCASE("who is not heard then is lost, once the outage could be over for it, too") {
    live(76, {0, 1}, false);
    CHECK(m.it.workers().find(0));
    live(8, {0, 1}, false);
    CHECK_FALSE(m.it.workers().find(0));
    CHECK(m.take<replace_process>()->role == role::worker);
  }
  SUBCASE("nobody comes: they are lost in the end") {
    live(161, {}, false);  // a minute in all
    CHECK(m.it.workers().all_gone());
    CHECK(m.it.servers().all().empty());
  }
}

TEST_CASE("the only member that is silent is lost, for a master cannot know more") {
  auto o = small();
  o.num_servers = 0;
  master m(o);
  CHECK(m.join(role::worker, 0));
  for (int i = 0; i < 20; ++i) m.it.tick(m.now += milliseconds(250));
  CHECK(m.it.workers().all_gone());
  CHECK(m.take<replace_process>());
}

TEST_CASE("what a job waits for is told in words, and every step is another mark") {
  auto o = small();
  o.checkpoint = true;
  master m(o);
  CHECK(m.it.waits_for(m.now) == "server 0 to join; server 1 to join");
  CHECK(m.join(role::server, 0));
  CHECK(m.it.waits_for(m.now) == "server 1 to join");
  CHECK(m.join(role::server, 1));
  CHECK(m.it.waits_for(m.now) ==
        "server 0 to take the state of generation 1; server 1 to take the state of generation 1");
  m.it.server_configured(0, 1, 1, {}, m.now);
  CHECK(m.it.waits_for(m.now) == "server 1 to take the state of generation 1");
  m.it.server_configured(1, 1, 1, {}, m.now);
  CHECK(m.it.waits_for(m.now) == "a worker to join");
  CHECK(m.join(role::worker, 0));
  CHECK(m.it.waits_for(m.now) == "1 worker, of which none asks for a task");
  auto const idle = m.it.steps();
  auto const t = m.ask();
  CHECK(m.it.steps() == idle);  // nothing has been trained
  CHECK(m.join(role::worker, 1));
  m.it.left(role::worker, 1, 1, m.now);
  CHECK(m.it.steps() == idle);
  m.now += seconds(75);
  CHECK(m.it.waits_for(m.now) == "worker 0, which has had a task for 75 s");
  auto const leased = m.it.steps();
  m.it.heartbeat(role::worker, 0, 1, {.records = 2}, m.now);
  auto const begun = m.it.steps();
  CHECK(begun != leased);
  CHECK(m.done(t));
  CHECK(m.it.steps() != begun);
  m.it.left(role::server, 1, 1, m.now);
  CHECK(m.it.waits_for(m.now) == "server 1 to join; a checkpoint to be found");
}

TEST_CASE(
    "a worker that the platform takes away keeps its tasks until it goes; another is started meanwhile") {
  master m(small());
  m.start();
  auto const t = m.ask();
  REQUIRE(t.kind == task_kind::training);
  m.it.leaving(0, "was preempted");
  auto const next = m.take<start_process>();
  REQUIRE(next);
  CHECK(next->id == 2);
  CHECK(next->instead_of == 0u);
  m.it.leaving(0, "was preempted");
  CHECK(!m.take<start_process>());
  CHECK(m.done(t));
  m.it.exited(role::worker, 0, exit_kind::preempted, "was preempted", m.now);
  CHECK(!m.take<replace_process>());
  CHECK(m.it.workers().find(0) == nullptr);
}

TEST_CASE("a new process with the id of an old one takes its place") {
  master m(small());
  m.start();
  auto const t = m.ask();
  CHECK(m.join(role::worker, 0, 2));
  CHECK(!m.done(t));
  CHECK(m.it.request_task(0, 2, m.now).key == t.key);
  CHECK(!m.take<replace_process>());
}

TEST_CASE("processes of another model, and servers too many, are refused") {
  master m(small());
  m.start();
  CHECK(!m.it.join({role::worker, 5, 1, {}, 6}, m.now).accepted);
  auto const reply = m.it.join({role::server, 2, 1, {}, 5}, m.now);
  CHECK(!reply.accepted);
  CHECK(!reply.over);
  CHECK(reply.reason == "the job has 2 servers, give --num_ps_pods=3");
  CHECK(!m.it.join({role::worker, 0xffffffffu, 1, {}, 5}, m.now).accepted);
}

TEST_CASE("a process that was started with another flag than the job is refused, with both") {
  auto o = small();
  o.flags = {"--seed=1", "--minibatch_size=2"};
  master m(o);
  m.start();
  auto const join = [&](role of, std::uint32_t id, std::vector<std::string> flags) {
    return m.it.join({.role = of, .id = id, .incarnation = 9, .layout = 5, .flags = std::move(flags)}, m.now);
  };
  CHECK(join(role::worker, 7, {"--seed=1", "--minibatch_size=2"}).accepted);
  CHECK(join(role::server, 1, {"--seed=1"}).accepted);  // reads fewer
  for (role const of : {role::worker, role::server}) {
    auto const other = join(of, of == role::worker ? 8 : 1, {"--seed=12"});
    CHECK_FALSE(other.accepted);
    CHECK_FALSE(other.over);
    CHECK(
        other.reason ==
        "it was started with --seed=12, and the job with --seed=1 --minibatch_size=2: give all processes the "
        "same");
  }
  CHECK_FALSE(join(role::worker, 8, {"--seed=1", "--minibatch_size=4"}).accepted);
}

TEST_CASE("a job without data is refused") {
  auto o = small();
  o.training.clear();
  CHECK_THROWS_AS(master{o}, edl::usage_error);
  o = small();
  o.minibatch_size = std::uint64_t{1} << 40;
  o.minibatches_per_task = std::uint64_t{1} << 40;
  CHECK_THROWS_AS(master{o}, edl::usage_error);
}

TEST_CASE("max_step and stop end training early, as usual") {
  auto o = small();
  o.num_epochs = 0;
  o.max_step = 5;
  o.final_checkpoint = true;
  master m(o);
  m.start();
  CHECK(m.work(task_kind::training) == 3);
  CHECK(m.take<ask_version>());

  o.max_step = 0;
  master n(o);
  n.start();
  auto const t = n.ask();
  n.it.stop(n.now);
  CHECK(!n.take<ask_version>());
  CHECK(n.ask().kind == task_kind::wait);
  CHECK(n.done(t));
  CHECK(n.take<ask_version>());
}

TEST_CASE("progress") {
  auto o = small();
  o.num_epochs = 2;
  master m(o);
  m.start();
  m.join(role::worker, 1);
  m.done(m.ask());
  m.now += seconds(2);
  m.it.heartbeat(role::worker, 0, 1, {.records = 4, .loss = 3}, m.now);
  m.it.heartbeat(role::worker, 1, 1, {.records = 8, .loss = 1}, m.now);
  m.it.heartbeat(role::server, 0, 1, {.version = 6}, m.now);
  m.it.heartbeat(role::server, 1, 1, {.version = 7}, m.now);
  auto const p = m.it.progress();
  CHECK(p.workers == 2);
  CHECK(p.servers == 2);
  CHECK(p.rate == doctest::Approx(6));
  CHECK(p.loss == doctest::Approx(2));
  CHECK(p.version == 6);  // server 0's
  CHECK(p.done.records_done == 4);
  CHECK(p.total_records == 40);
}

TEST_CASE("the loss of a job stays known when its workers have left") {
  master m(small());
  m.start();
  CHECK(m.it.progress().loss == 0);
  m.it.heartbeat(role::worker, 0, 1, {.records = 4, .loss = 3}, m.now);
  m.it.left(role::worker, 0, 1, m.now);
  CHECK(m.it.progress().loss == doctest::Approx(3));
}

}  // namespace coordinator_test
