// SPDX-License-Identifier: Apache-2.0
#include "edl/master/coordinator.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

using namespace edl::master;
using edl::ledger;
using edl::task_kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Twenty records in tasks of four, in minibatches of two.
job_options small(job_type type = job_type::training_only) {
  job_options o;
  o.type = type;
  o.training = {{"t", 20}};
  o.validation = {{"v", 6}};
  o.prediction = {{"p", 8}};
  o.minibatch_size = 2;
  o.minibatches_per_task = 2;
  o.shuffle = false;
  o.num_workers = 2;
  o.num_servers = 2;
  return o;
}

// A coordinator, and what it has asked for since the last look.
struct master {
  explicit master(job_options o) : it(std::move(o), now) { look(); }

  time_point now{};
  coordinator it;
  std::vector<command> seen;

  void look() {
    for (auto& c : it.take_commands()) seen.push_back(std::move(c));
  }

  // The first command of a kind since the last `take` of it.
  template <class C>
  std::optional<C> take() {
    look();
    for (auto i = seen.begin(); i != seen.end(); ++i)
      if (auto* c = std::get_if<C>(&*i)) {
        C const found = *c;
        seen.erase(i);
        return found;
      }
    return std::nullopt;
  }

  bool said(std::string const& text) {
    look();
    for (auto const& c : seen)
      if (auto* line = std::get_if<log_line>(&c); line && line->text == text) return true;
    return false;
  }

  bool join(role of, std::uint32_t id, std::uint64_t incarnation = 1) {
    return it.join({of, id, incarnation, {}, 5}, now).accepted;
  }

  void configured(std::uint64_t incarnation_of_1 = 1) {
    it.server_configured(0, 1, it.generation(), {}, now);
    it.server_configured(1, incarnation_of_1, it.generation(), {}, now);
  }

  // Both servers and worker 0 are there.
  void start() {
    for (std::uint32_t id : {0, 1}) CHECK(join(role::server, id));
    CHECK(join(role::worker, 0));
    if (take<configure_servers>()) configured();
  }

  task_reply ask(std::uint32_t worker = 0) { return it.request_task(worker, 1, now); }

  bool done(task_reply const& t, std::vector<double> sums = {}, std::uint32_t worker = 0) {
    task_report r{.worker = worker, .incarnation = 1, .lease = t.lease, .metrics = std::move(sums)};
    return it.report_task(r, now);
  }

  // Does all tasks of one kind that there are now.
  int work(task_kind kind, std::vector<double> sums = {}) {
    int n = 0;
    for (auto t = ask(); t.kind == kind; t = ask(), ++n) CHECK(done(t, sums));
    return n;
  }
};

}  // namespace

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

TEST_CASE("a job without evaluation and checkpoints is finished with its last task") {
  master m(small());
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  CHECK(m.it.finished());
  CHECK(m.take<finish_job>());
  CHECK(!m.take<ask_version>());
  CHECK(m.ask().kind == task_kind::finished);
  CHECK(m.it.heartbeat(role::worker, 0, 1, {}, m.now).finished);
  CHECK(m.it.progress().done.records_done == 20);
  auto const late = m.it.join({role::worker, 9, 1, {}, 5}, m.now);
  CHECK(!late.accepted);
  CHECK(late.over);
}

TEST_CASE("a worker that waits gets what is recovered later") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  task_reply last;
  for (int i = 0; i < 5; ++i) last = m.ask(1);
  CHECK(m.ask(0).kind == task_kind::wait);
  m.it.left(role::worker, 1, 1, m.now);
  CHECK(!m.done(last, {}, 1));
  CHECK(m.ask(1).kind == task_kind::wait);  // the zombie gets nothing
  CHECK(!m.it.heartbeat(role::worker, 1, 1, {}, m.now).known);
  auto const t = m.ask(0);
  CHECK(t.kind == task_kind::training);
  CHECK(t.resumed);
  CHECK(m.done(t));
  CHECK(m.work(task_kind::training) == 4);
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
  CHECK(m.it.finished());
  CHECK(!m.join(role::server, 0));
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
  CHECK(r->of == role::worker);
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
  CHECK(m.said(
      "no member has been heard for 2.5 s: this master may be cut off; it blames nobody for up to 60 s"));
  CHECK(m.it.waits_for(m.now).find("this master may be cut off") != std::string::npos);
  SUBCASE("all are heard again") {
    live(40, {0, 1}, true);
    CHECK(m.said(
        "Members are heard again after 20.2 s: what they could not tell meanwhile is held against nobody"));
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
    CHECK(m.take<replace_process>()->of == role::worker);
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
  CHECK(m.it.waits_for(m.now) == "1 workers, of which none asks for a task");
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

TEST_CASE("a lost server takes all back to the newest checkpoint, under a new generation") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 2;
  o.checkpoint = true;
  master m(o);
  m.start();
  auto const done = m.ask();
  CHECK(m.done(done));
  auto const held = m.ask();
  m.it.version_reached({1, 4, true, true}, m.now);
  CHECK(m.take<write_checkpoint>()->version == 4);

  m.it.left(role::server, 1, 1, m.now);
  CHECK(m.it.generation() == 2);
  CHECK(!m.it.ready());
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(!m.done(held));
  CHECK(m.it.heartbeat(role::worker, 0, 1, {}, m.now).known);  // survivors stay
  m.it.checkpoint_written(1, 4, {}, m.now);                    // too late
  CHECK(!m.take<release_frozen>());
  auto const find = m.take<find_restore_point>();
  REQUIRE(find);
  CHECK(find->generation == 2);

  m.it.exited(role::server, 1, exit_kind::preempted, "killed", m.now);
  auto const r = m.take<replace_process>();
  REQUIRE(r);
  CHECK(r->of == role::server);
  CHECK(r->with == 1);

  restore_point point{"version-2", 2, {}};
  point.applied.set_closed(0, 1, 3);
  point.applied.set_open({0, 0}, 1);
  m.it.restore_point_found(1, restore_point{}, m.now);  // of an older generation
  m.it.restore_point_found(2, point, m.now);
  CHECK(!m.take<configure_servers>());
  CHECK(!m.join(role::server, 1, 1));
  CHECK(m.join(role::server, 1, 2));
  auto const c = m.take<configure_servers>();
  REQUIRE(c);
  CHECK(c->generation == 2);
  CHECK(c->restore == "version-2");
  m.configured(2);
  CHECK(m.it.ready());
  CHECK(m.it.progress().version == 2);
  CHECK(m.it.progress().done.records_done == 8);

  // What the ledger lacks, from where it stands; the evaluation of version 4 is gone, and comes again.
  auto const t = m.ask();
  CHECK(t.kind == task_kind::training);
  CHECK(t.generation == 2);
  CHECK(t.key == edl::task_key{0, 0});
  CHECK(t.applied == 1);
  CHECK(t.resumed);
  m.it.version_reached({1, 4, true, false}, m.now);  // of the old generation
  CHECK(m.it.evaluations().idle());
  m.it.version_reached({2, 4, true, false}, m.now);
  CHECK(m.ask().kind == task_kind::evaluation);
}

TEST_CASE("without a checkpoint a lost server takes all back to the start") {
  auto o = small();
  o.start = {"version-9", 9, {}};
  o.start.applied.set_closed(0, 0, 1);
  master m(o);
  for (std::uint32_t id : {0, 1}) CHECK(m.join(role::server, id));
  CHECK(m.take<configure_servers>()->restore == "version-9");
  m.start();
  m.configured();
  CHECK(m.done(m.ask()));
  CHECK(m.it.progress().done.tasks_done == 2);
  CHECK(m.join(role::server, 0, 2));  // started anew before anybody noticed
  CHECK(m.it.generation() == 2);
  m.it.restore_point_found(2, std::nullopt, m.now);
  CHECK(m.take<configure_servers>()->restore == "version-9");
  CHECK(m.it.progress().done.tasks_done == 1);
}

TEST_CASE("a server that is lost while it is configured begins one more generation") {
  master m(small());
  m.join(role::server, 0);
  m.it.left(role::server, 0, 1, m.now);
  CHECK(m.it.generation() == 1);  // nothing had been asked of it
  m.join(role::server, 0, 2);
  m.join(role::server, 1);
  REQUIRE(m.take<configure_servers>());
  m.it.server_configured(1, 1, 1, {}, m.now);
  m.it.left(role::server, 0, 2, m.now);
  CHECK(m.it.generation() == 2);
  m.join(role::server, 0, 3);
  CHECK(!m.take<configure_servers>());  // where to is not known yet
  m.it.restore_point_found(2, std::nullopt, m.now);
  CHECK(m.take<configure_servers>()->generation == 2);
  m.it.server_configured(1, 1, 1, {}, m.now);
  m.it.server_configured(0, 3, 2, {}, m.now);
  CHECK(!m.it.ready());
  m.it.server_configured(1, 1, 2, {}, m.now);
  CHECK(m.it.ready());
}

TEST_CASE("a checkpoint of other data, or one that a server cannot take, ends the job with that reason") {
  master m(small());
  m.start();
  m.it.left(role::server, 0, 1, m.now);
  restore_point point{"version-1", 1, {}};
  point.applied.set_closed(0, 0, 6);
  m.it.restore_point_found(2, point, m.now);
  CHECK(m.it.failed());
  CHECK(m.take<fail_job>()->reason.starts_with("cannot go back to 'version-1': the ledger has task 5"));

  auto o = small();
  o.start = point;
  CHECK_THROWS_AS(master{o}, edl::error);

  master n(small());
  n.join(role::server, 0);
  n.join(role::server, 1);
  n.it.server_configured(1, 1, 1, "no such file", n.now);
  CHECK(n.it.reason() == "server 1 cannot take the state of '': no such file");
}

TEST_CASE("evaluation goes before training, but after what a lost worker left half done") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 2;
  master m(o);
  m.start();
  m.join(role::worker, 1);
  auto const half = m.ask(1);
  m.it.version_reached({1, 2, true, false}, m.now);
  m.it.left(role::worker, 1, 1, m.now);
  auto const first = m.ask();
  CHECK(first.kind == task_kind::training);
  CHECK(first.key == half.key);
  auto const e = m.ask();
  CHECK(e.kind == task_kind::evaluation);
  CHECK(e.version == 2);
  CHECK(e.frozen);
  CHECK(e.range == task_range{0, 0, 4});

  // Who returns it (a server has not got that far) gets something else to do first.
  CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = e.lease, .returned = true}, m.now));
  CHECK(m.ask().kind == task_kind::training);
  auto const again = m.ask();
  CHECK(again.kind == task_kind::evaluation);
  CHECK(m.done(again, {4, 1}));
  auto const last = m.ask();
  CHECK(last.kind == task_kind::evaluation);
  CHECK(last.range == task_range{0, 4, 6});
  CHECK(m.done(last, {2, 1}));
  auto const result = m.take<evaluation_done>();
  REQUIRE(result);
  CHECK(result->result.totals == std::vector<double>{6, 2});
  CHECK(result->result.of.version == 2);
  auto const release = m.take<release_frozen>();
  REQUIRE(release);
  CHECK(release->version == 2);
  CHECK(release->evaluation);
}

TEST_CASE("at the end: the last version, the final checkpoint, the final evaluation, finished") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 100;
  o.final_checkpoint = true;
  master m(o);
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  CHECK(m.ask().kind == task_kind::wait);
  CHECK(m.take<ask_version>()->generation == 1);
  m.it.version_told(1, 10, m.now);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  CHECK(w->version == 10);
  CHECK(w->final);
  auto const e = m.ask();
  CHECK(e.kind == task_kind::evaluation);
  CHECK(e.version == 10);
  CHECK(!e.frozen);
  CHECK(m.done(e, {1}));
  CHECK(m.work(task_kind::evaluation, {1}) == 1);
  CHECK(!m.it.finished());
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK(m.it.finished());
  CHECK(m.take<evaluation_done>());
  CHECK(m.take<finish_job>());
}

TEST_CASE("a version that has been evaluated is not evaluated once more at the end") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 10;
  master m(o);
  m.start();
  for (int i = 0; i < 5; ++i) m.done(m.ask());
  m.it.version_told(1, 10, m.now);
  m.it.version_reached({1, 10, true, false}, m.now);  // its message came late
  CHECK(m.take<release_frozen>()->version == 10);
  CHECK(m.work(task_kind::evaluation, {1}) == 2);
  CHECK(m.take<evaluation_done>());
  CHECK(!m.take<evaluation_done>());
  CHECK(m.it.finished());
}

TEST_CASE("a server lost at the very end takes the job back, not to its end") {
  auto o = small();
  o.final_checkpoint = true;
  master m(o);
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  m.it.version_told(1, 10, m.now);
  m.it.left(role::server, 1, 1, m.now);
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK(!m.it.finished());
  m.it.restore_point_found(2, std::nullopt, m.now);
  m.join(role::server, 1, 2);
  m.configured(2);
  CHECK(m.work(task_kind::training) == 5);
  while (m.take<write_checkpoint>()) {
  }
  m.it.version_told(2, 10, m.now);
  CHECK(m.take<write_checkpoint>()->generation == 2);
  m.it.checkpoint_written(2, 10, {}, m.now);
  CHECK(m.it.finished());
}

TEST_CASE("checkpoints are written one at a time, the newest first; one that fails is a warning") {
  auto o = small();
  o.checkpoint = true;
  master m(o);
  m.start();
  for (std::uint64_t v : {2, 2, 4, 6}) m.it.version_reached({1, v, false, true}, m.now);
  CHECK(m.take<write_checkpoint>()->version == 2);
  CHECK(!m.take<write_checkpoint>());
  auto released = m.take<release_frozen>();
  REQUIRE(released);
  CHECK(released->version == 4);  // 6 is newer
  CHECK(!released->evaluation);
  m.it.checkpoint_written(1, 2, "no space left", m.now);
  CHECK(m.said("the checkpoint of version 2 cannot be written: no space left"));
  CHECK(m.take<release_frozen>()->version == 2);
  CHECK(m.take<write_checkpoint>()->version == 6);
  CHECK(!m.it.over());
}

TEST_CASE("a final checkpoint that cannot be written fails the job") {
  auto o = small();
  o.final_checkpoint = o.checkpoint = true;
  master m(o);
  m.start();
  m.it.version_reached({1, 8, false, true}, m.now);
  m.work(task_kind::training);
  m.it.version_told(1, 10, m.now);
  m.it.version_reached({1, 9, false, true}, m.now);  // must not push the final one out
  CHECK(m.take<write_checkpoint>()->version == 8);
  m.it.checkpoint_written(1, 8, {}, m.now);
  CHECK(!m.it.finished());
  CHECK(m.take<write_checkpoint>()->final);
  m.it.checkpoint_written(1, 10, "no space left", m.now);
  CHECK(m.it.reason() == "the final checkpoint cannot be written: no space left");
}

TEST_CASE("frozen versions that nobody wants are released") {
  master m(small());
  m.start();
  m.it.version_reached({1, 2, true, true}, m.now);
  for (bool evaluation : {true, false}) {
    auto const r = m.take<release_frozen>();
    REQUIRE(r);
    CHECK(r->evaluation == evaluation);
  }
  CHECK(!m.take<write_checkpoint>());
}

TEST_CASE("only evaluating") {
  auto o = small(job_type::evaluation_only);
  o.start = {"version-70", 70, {}};
  o.start.applied.set_closed(0, 0, 99);  // of the training that wrote it
  master m(o);
  m.start();
  auto const a = m.ask();
  CHECK(a.kind == task_kind::evaluation);
  CHECK(a.version == 70);
  CHECK(!a.frozen);
  CHECK(m.done(a, {4}));
  auto const b = m.ask();
  // The model is what it was: what is done stays done.
  m.it.left(role::server, 0, 1, m.now);
  CHECK(!m.take<find_restore_point>());
  CHECK(!m.done(b, {2}));
  m.join(role::server, 0, 2);
  CHECK(m.take<configure_servers>()->restore == "version-70");
  m.it.server_configured(0, 2, 2, {}, m.now);
  m.it.server_configured(1, 1, 2, {}, m.now);
  CHECK(m.work(task_kind::evaluation, {2}) == 1);
  CHECK(m.take<evaluation_done>()->result.totals == std::vector<double>{6});
  CHECK(m.it.finished());

  o.validation = {{"empty", 0}};
  CHECK_THROWS_AS(master{o}, edl::usage_error);
}

TEST_CASE("only predicting") {
  auto o = small(job_type::prediction_only);
  o.num_epochs = 7;
  o.start = {"version-70", 70, {}};
  o.start.applied.set_closed(0, 0, 99);
  master m(o);
  m.start();
  auto const a = m.ask();
  CHECK(a.kind == task_kind::prediction);
  CHECK(m.done(a));
  auto const b = m.ask();
  m.it.left(role::server, 1, 1, m.now);
  CHECK(!m.done(b));
  m.join(role::server, 1, 2);
  m.configured(2);
  CHECK(m.work(task_kind::prediction) == 1);
  CHECK(m.it.finished());
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
                               "', records [0, 4)) failed 1 of 1 times: torn");
  }
}

TEST_CASE("sums of another number count as an error of the task") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 1;
  master m(o);
  m.start();
  m.it.version_reached({1, 1, true, false}, m.now);
  auto const a = m.ask(), b = m.ask();
  CHECK(m.done(a, {1, 2}));
  CHECK(m.done(b, {1}));
  CHECK(!m.it.evaluations().idle());
  CHECK(m.done(m.ask(), {1, 2}));
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
  CHECK(m.said("worker 0 is lost: it lives, but has been at one minibatch for 61 s; 1 tasks go to others"));
  CHECK(m.ask(1).key == t.key);
  live(11, 5, 4);
  CHECK(m.take<replace_process>()->id == 0);
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
