// SPDX-License-Identifier: Apache-2.0
// What fails too often or is too slow in a job with servers.
#include <doctest/doctest.h>

#include <cmath>
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
  CHECK(m.said("worker 2 failed again; a replacement starts in 1 s: was killed because memory ran out"));
  m.it.tick(m.now += seconds(1));
  CHECK(!m.take<replace_process>());
  m.it.tick(m.now += seconds(1));
  auto const second = m.take<replace_process>();
  REQUIRE(second);
  CHECK(second->with == 3);
}

TEST_CASE("the next master knows how often workers have failed, and which ids were theirs") {
  auto o = small();
  o.worker_failures = 1;
  master m(o);
  m.start();
  m.it.exited(role::worker, 0, exit_kind::failed, "torn", m.now);
  REQUIRE(m.take<replace_process>()->with == 2);
  master next(o, m.it.remembered());
  next.join(role::worker, 2);
  next.it.exited(role::worker, 2, exit_kind::failed, "torn", next.now);
  CHECK(next.said("worker 2 failed too often and is not replaced: torn"));
  next.it.exited(role::worker, 1, exit_kind::failed, "torn", next.now);
  CHECK(next.take<replace_process>()->with == 3);
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

TEST_CASE("a record that one worker refuses and another takes is told with both") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  auto const bad = m.ask();
  CHECK(m.it.report_task(
      {.worker = 0, .incarnation = 1, .lease = bad.lease, .error = "no such class", .refused = true}, m.now));
  CHECK(m.said("task 0 of epoch 0 failed on worker 0 for one of its records, and another worker tries it"));
  auto const again = m.ask(1);
  CHECK(again.key == bad.key);
  CHECK(m.it.report_task({.worker = 1, .incarnation = 1, .lease = again.lease}, m.now));
  CHECK(m.said(
      "a task that failed on worker 0 is done on worker 1, so that machine may be faulty: no such class"));
  CHECK_FALSE(m.it.failed());
}

TEST_CASE(
    "a worker whose result is wrong and right elsewhere is replaced, and one that others share is not") {
  for (bool const shared : {false, true}) {
    master m(small());
    m.start();
    m.join(role::worker, 1);
    auto const fails = [&](std::uint32_t worker, task_reply const& t) {
      CHECK(m.it.report_task(
          {.worker = worker, .incarnation = 1, .lease = t.lease, .error = "the loss is nan", .wrong = true},
          m.now));
    };
    auto const bad = m.ask();
    fails(0, bad);
    CHECK(m.ask().kind == task_kind::wait);
    auto const again = m.it.request_task(1, 1, m.now);
    CHECK(again.key == bad.key);
    if (shared) {
      fails(1, again);
      CHECK(m.it.workers().find(0));
      continue;
    }
    CHECK(m.it.report_task({.worker = 1, .incarnation = 1, .lease = again.lease}, m.now));
    CHECK_FALSE(m.it.workers().find(0));
    CHECK(m.take<replace_process>()->id == 0);
    CHECK_FALSE(m.it.failed());
  }
}

TEST_CASE(
    "sums of an evaluation that are not finite are computed again by another worker, before they count") {
  for (bool const shared : {false, true}) {
    CAPTURE(shared);
    auto o = small(job_type::training_with_evaluation);
    o.evaluation_steps = 1;
    master m(o);
    m.start();
    m.join(role::worker, 1);
    m.it.version_reached({1, 1, true, false}, m.now);
    double const nan = std::nan("");
    auto const bad = m.ask();
    REQUIRE(bad.kind == task_kind::evaluation);
    CHECK(m.done(bad, 0, {nan, 4}));
    CHECK(m.said("its sums are not finite"));
    CHECK(m.ask().kind == task_kind::training);  // until another has told whose fault it is
    auto const again = m.ask(1);
    CHECK(again.key == bad.key);
    CHECK(m.done(again, 1, {shared ? nan : 1, 4}));
    CHECK(bool(m.it.workers().find(0)) == shared);
    auto result = m.take<evaluation_done>();
    for (; !result; result = m.take<evaluation_done>()) {
      auto const t = m.ask(1);
      REQUIRE(edl::is_work(t.kind));
      CHECK(m.done(t, 1, {shared ? nan : 1, 4}));  // what is the model's own is asked once
    }
    CHECK(std::isfinite(result->result.totals[0]) == !shared);
    CHECK_FALSE(m.it.failed());
  }
}

TEST_CASE("a lone worker's sums that are not finite count") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 1;
  master m(o);
  m.start();
  m.it.version_reached({1, 1, true, false}, m.now);
  for (auto t = m.ask(); t.kind == task_kind::evaluation; t = m.ask()) CHECK(m.done(t, 0, {std::nan(""), 4}));
  CHECK(m.take<evaluation_done>());
}

TEST_CASE("a result that is wrong once, and then right on the same worker, blames nobody") {
  master m(small());
  m.start();
  auto const bad = m.ask();
  CHECK(m.it.report_task(
      {.worker = 0, .incarnation = 1, .lease = bad.lease, .error = "the loss is nan", .wrong = true}, m.now));
  for (bool again = false; !again;) {
    auto const t = m.ask();
    REQUIRE(t.kind == task_kind::training);
    again = t.key == bad.key;
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease}, m.now));
  }
  CHECK(m.it.workers().find(0));
  CHECK_FALSE(m.it.failed());
}

TEST_CASE("a worker on which three tasks in a row fail that others complete is replaced") {
  master m(small());
  m.start();
  m.join(role::worker, 1);
  std::vector<task_reply> const leased{m.ask(), m.ask(), m.ask()};
  for (auto const& t : leased)
    CHECK(
        m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .error = "no such file"}, m.now));
  for (int done = 0; done < 5; ++done) {
    CHECK(m.it.workers().find(0));
    auto const t = m.it.request_task(1, 1, m.now);
    REQUIRE(t.kind == task_kind::training);
    CHECK(m.it.report_task({.worker = 1, .incarnation = 1, .lease = t.lease}, m.now));
  }
  CHECK_FALSE(m.it.workers().find(0));
  CHECK_FALSE(m.it.failed());
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
    auto const beat = [&](std::uint64_t records) {
      m.it.heartbeat(role::worker, 0, 1, {.records = records}, m.now);
      m.it.tick(m.now);
    };
    m.now += seconds(150);
    beat(2);
    m.now += seconds(300);
    beat(2);  // it has trained nothing since
    CHECK(m.it.workers().known(0, 1));
    CHECK_FALSE(m.said("takes too long for its task"));
    m.now += seconds(1);
    beat(2);
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

namespace {

// Worker 0 computes wrongly, as two others find.
struct checked_master : master {
  static job_options options() {
    auto o = small();
    o.num_workers = 3;
    o.checks = o.checkpoint = true;
    return o;
  }
  explicit checked_master(std::optional<persisted_state> before = {})
      : master(options(), std::move(before)) {}

  void join_all(std::uint64_t heard, std::uint64_t held) {
    for (std::uint32_t const id : {0, 1})
      CHECK(it.join({.role = role::server,
                     .id = id,
                     .incarnation = 1,
                     .layout = 5,
                     .held = held,
                     .ranges = {id},
                     .heard = heard},
                    now)
                .accepted);
    for (std::uint32_t const id : {0, 1, 2})
      CHECK(it.join({.role = role::worker,
                     .id = id,
                     .incarnation = 1,
                     .layout = 5,
                     .heard = heard,
                     .kind = "a processor"},
                    now)
                .accepted);
  }
  void tell(std::uint32_t worker, task_reply const& t, std::uint64_t version, std::uint64_t gradient) {
    it.report_task({.worker = worker,
                    .incarnation = 1,
                    .lease = t.lease,
                    .checked = {{.index = 0, .version = version, .weights = 5, .gradient = gradient}}},
                   now);
  }
  void check(std::uint32_t worker, std::uint64_t gradient) {
    auto const t = ask(worker);
    REQUIRE(t.kind == task_kind::check);
    tell(worker, t, 0, gradient);
  }
};

}  // namespace

TEST_CASE("what a worker has done wrong is undone by the next master, too") {
  checked_master first;
  first.join_all(0, 0);
  first.configured();
  first.tell(0, first.ask(0), 50, 7);
  first.check(1, 7);  // it was right then
  first.it.version_reached({first.it.generation(), 40, false, true}, first.now);
  REQUIRE(first.take<write_checkpoint>());
  auto const marks = first.it.remembers();
  first.it.checkpoint_written(first.it.generation(), 40, {}, first.now);
  CHECK(first.it.remembers() != marks);
  auto const before = first.it.remembered();
  CHECK(before.good.workers.at(0) == 40);

  // The successor goes on with the servers' state, and then finds it.
  checked_master next(before);
  next.join_all(before.generation, before.generation);
  auto const kept = next.take<configure_servers>();
  REQUIRE(kept);
  CHECK(kept->keep);
  next.answer(*kept, {}, 90);
  next.tell(0, next.ask(0), 95, 8);
  next.check(1, 7);
  next.check(2, 7);
  CHECK(next.said("worker 0 computes wrongly; the training after version 40 is undone"));
  CHECK(next.take<find_restore_point>()->newest == 40);

  // A third one takes its place before that is done.
  auto const found = next.it.remembered();
  CHECK(found.undo == 40);
  for (bool const done : {false, true}) {
    CAPTURE(done);
    checked_master last(found);
    last.join_all(found.generation, done ? found.generation : before.generation);
    auto const asked = last.take<find_restore_point>();
    CHECK(asked.has_value() == !done);
    if (asked) {
      CHECK(asked->newest == 40);
      last.it.restore_point_found(last.it.generation(), restore_point{"version-40", 40, {}}, last.now);
      CHECK_FALSE(last.it.remembered().undo);
    }
    auto const c = last.take<configure_servers>();
    REQUIRE(c);
    CHECK(c->keep == done);
    last.answer(*c, {}, 45);
    CHECK_FALSE(last.it.remembered().undo);
  }
}

TEST_CASE("a successor takes no copy of the model that the master before it has found to be wrong") {
  job_options o = small();
  o.num_servers = 0;
  o.replicas = true;
  for (bool const wrong : {true, false}) {
    CAPTURE(wrong);
    driven_master m(o, persisted_state{.generation = 16, .members = 2, .undo = 30, .void_until = 5});
    for (std::uint32_t const id : {0, 1}) CHECK(m.join(role::worker, id));
    for (std::uint32_t const id : {0, 1})
      m.enter(id, 5, copy_position{.version = 50, .applied = {}, .world = wrong ? 5u : 6u});
    auto const asked = m.take<find_restore_point>();
    CHECK(asked.has_value() == wrong);
    if (asked) CHECK(asked->newest == 30);
    CHECK(m.it.ready() == !wrong);
    if (!wrong) CHECK_FALSE(m.it.remembered().undo);
    CHECK(m.it.remembered().void_until == 5);
  }
}

TEST_CASE(
    "a new master goes on from the newest checkpoint where the servers it finds have less of its history") {
  using edl::in_epoch;
  job_options o = small();
  o.epoch = 2;
  o.start = {"/c/version-28500", 28500, {}, in_epoch(1, 6)};
  // With a journal or without: the state that servers tell is newer than what a new master knows of.
  for (bool const journal : {false, true})
    for (auto const& [held, version, stale] :
         {std::tuple{5u, 11486u, true}, std::tuple{6u, 28499u, true}, std::tuple{6u, 28510u, false}}) {
      CAPTURE(journal);
      CAPTURE(version);
      std::optional<persisted_state> before;
      if (journal) before = persisted_state{.generation = in_epoch(1, 5), .wanted_servers = 2};
      driven_master m(o, before);
      for (std::uint32_t const id : {0, 1})
        CHECK(m.it.join({.role = role::server,
                         .id = id,
                         .incarnation = 1,
                         .layout = 5,
                         .held = in_epoch(1, held),
                         .ranges = {id},
                         .heard = in_epoch(1, held),
                         .version = version},
                        m.now)
                  .accepted);
      CHECK(edl::epoch_of(m.it.generation()) == 2);
      CHECK(m.said("the servers have version 11486 of a superseded history; the job goes on from the "
                   "checkpoint of version 28500") == (version == 11486));
      auto const asked = m.take<find_restore_point>();
      CHECK(asked.has_value() == stale);
      if (asked) m.it.restore_point_found(asked->generation, o.start, m.now);
      auto const c = m.take<configure_servers>();
      REQUIRE(c);
      CHECK(c->keep == !stale);
      CHECK(c->restore == (stale ? "/c/version-28500" : ""));
    }
}

TEST_CASE("who was given up in silence may live, and is waited for until it has heard of that") {
  auto const given_up = [](master& m) {
    m.start();
    m.pass(seconds(6), {0});
    CHECK_FALSE(m.it.workers().find(0));
    CHECK(m.it.untold());
  };
  master told(small()), ended(small()), gone(small()), left(small());
  given_up(told);
  CHECK_FALSE(told.it.heartbeat(role::worker, 0, 1, {}, told.now).known);
  CHECK_FALSE(told.it.untold());
  given_up(ended);
  ended.it.exited(role::worker, 0, exit_kind::failed, "signal 9", ended.now);
  CHECK_FALSE(ended.it.untold());
  given_up(gone);
  gone.it.hung_up(role::worker, 0, 1, gone.now);
  CHECK_FALSE(gone.it.untold());
  left.start();
  left.it.left(role::worker, 0, 1, left.now);
  CHECK_FALSE(left.it.untold());
}

TEST_CASE("a copy of the model that is behind the newest checkpoint does not count") {
  using edl::in_epoch;
  job_options o = small();
  o.num_servers = 0;
  o.replicas = true;
  o.epoch = 2;
  o.start = {"/c/version-300", 300, {}, in_epoch(1, 6)};
  for (auto const& [world, version, behind] :
       {std::tuple{5u, 250u, true}, std::tuple{6u, 299u, true}, std::tuple{6u, 300u, false}}) {
    CAPTURE(version);
    driven_master m(o, persisted_state{.generation = in_epoch(1, 6), .members = 1});
    CHECK(m.join(role::worker, 0));
    m.enter(0, in_epoch(1, world),
            copy_position{.version = version, .applied = {}, .world = in_epoch(1, world)});
    auto const asked = m.take<find_restore_point>();
    CHECK(asked.has_value() == behind);
    if (asked) m.it.restore_point_found(asked->generation, o.start, m.now);
    REQUIRE(m.it.ready());
    CHECK(m.it.began_at() == 300);
    // The same holds for what this master has seen written.
    m.it.version_reached({m.it.generation(), 310, false, true}, m.now);
    m.it.checkpoint_written(m.it.generation(), 310, {}, m.now);
    CHECK(m.join(role::worker, 1));
    m.it.left(role::worker, 0, 1, m.now);
    m.enter(1, m.it.generation() - 1,
            copy_position{.version = 305, .applied = {}, .world = m.it.generation() - 1});
    CHECK(m.take<find_restore_point>());
    CHECK(
        m.said("the copy of worker 1, of version 305, belongs to a superseded history: it does not count "
               "beside the checkpoint of version 310"));
  }
}

TEST_CASE("workers on nodes that are short of something hand over one by one, as long as that is so") {
  for (bool const leaves : {true, false}) {
    CAPTURE(leaves);
    auto o = small();
    o.num_workers = 3;
    o.leave_bad_nodes = leaves;
    master m(o);
    m.start();
    for (std::uint32_t const id : {1, 2}) m.join(role::worker, id);
    std::string const why = "runs on node n, which has MemoryPressure";
    m.it.pressed({{0, why}, {1, why}, {9, why}});
    for (int i = 0; i < 3; ++i) m.it.tick(m.now += seconds(1));
    auto const first = m.take_all<stop_process>();
    CHECK(first.size() == (leaves ? 1 : 0));
    CHECK(m.said("worker 0 " + why) == leaves);
    CHECK_FALSE(m.take<avoid_place>());  // its scheduler knows better for how long
    if (!leaves) continue;
    CHECK(first[0].id == 0);
    CHECK(m.take<start_process>()->id == 3);
    m.it.left(role::worker, 0, 1, m.now);
    m.join(role::worker, 3);
    m.it.tick(m.now += seconds(1));
    CHECK(m.take<stop_process>()->id == 1);
    m.it.left(role::worker, 1, 1, m.now);
    m.join(role::worker, 4);
    m.it.pressed({{2, why}});
    m.it.pressed({});
    m.it.tick(m.now += seconds(1));
    CHECK_FALSE(m.take<stop_process>());
  }
}

TEST_CASE(
    "a worker whose disk is slow beside its siblings' as it begins is told of, and hands over with the "
    "flag") {
  for (bool const leaves : {true, false}) {
    CAPTURE(leaves);
    auto o = small();
    o.num_workers = 3;
    o.leave_bad_nodes = leaves;
    master m(o);
    m.start();
    for (std::uint32_t const id : {1, 2, 3})
      CHECK(m.it.join({.role = role::worker,
                       .id = id,
                       .incarnation = 1,
                       .layout = 5,
                       .speeds = {.disk = id == 2 ? 1e6 : 9e7, .network = 1e9}},
                      m.now)
                .accepted);
    m.it.tick(m.now += seconds(1));
    CHECK(m.said("worker 2 is slow: when it started it wrote to its disk with 1 MB/s, its siblings 90 MB/s"));
    auto const stopped = m.take<stop_process>();
    CHECK(stopped.has_value() == leaves);
    if (leaves) CHECK(stopped->id == 2);
    CHECK(m.take<avoid_place>().has_value() == leaves);
  }
}

}  // namespace coordinator_failures_test
