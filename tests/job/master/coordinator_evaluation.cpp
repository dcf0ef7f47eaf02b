// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction in a job with servers.
#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "job/master/master_with_servers.hpp"

namespace coordinator_evaluation_test {

using namespace master_with_servers;

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
  CHECK(m.done(again, 0, {4, 1}));
  auto const last = m.ask();
  CHECK(last.kind == task_kind::evaluation);
  CHECK(last.range == task_range{0, 4, 6});
  CHECK(m.done(last, 0, {2, 1}));
  auto const result = m.take<evaluation_done>();
  REQUIRE(result);
  CHECK(result->result.totals == std::vector<double>{6, 2});
  CHECK(result->result.evaluated.version == 2);
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
  m.it.version_announced(1, 10, m.now);
  auto const w = m.take<write_checkpoint>();
  REQUIRE(w);
  CHECK(w->version == 10);
  CHECK(w->final);
  auto const e = m.ask();
  CHECK(e.kind == task_kind::evaluation);
  CHECK(e.version == 10);
  CHECK(!e.frozen);
  CHECK(m.done(e, 0, {1}));
  CHECK(m.work(task_kind::evaluation, {1}) == 1);
  CHECK(!m.it.finished());
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK(m.it.finished());
  CHECK(m.take<evaluation_done>());
  CHECK(m.take<finish_job>());
}

TEST_CASE("where the evaluation at the end fails, what is trained is kept, and the job says so") {
  for (bool const judges : {false, true}) {
    auto o = small(job_type::training_with_evaluation);
    o.evaluation_steps = 100;
    o.final_checkpoint = true;
    o.judges = judges;
    o.max_retries = 2;
    master m(o);
    m.start();
    m.work(task_kind::training);
    m.it.version_announced(1, 10, m.now);
    for (int i = 0; i < 4 && !m.it.over(); ++i) {
      auto const e = m.ask();
      if (e.kind != task_kind::evaluation) break;
      CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = e.lease, .error = "record 5 is torn"},
                             m.now));
    }
    CHECK_FALSE(m.it.over());
    m.it.checkpoint_written(1, 10, {}, m.now);
    CHECK(m.it.finished());
    CHECK(m.it.versions().unevaluated().find("evaluation of version 10") == 0);
    CHECK(m.it.versions().unevaluated().find("record 5 is torn") != std::string::npos);
    CHECK(m.take<finish_job>());
    CHECK_FALSE(m.take<evaluation_done>());
  }
}

TEST_CASE("where too many records of the evaluation at the end are damaged, what is trained is kept, too") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 100;
  o.final_checkpoint = true;
  o.max_damaged = 0;
  master m(o);
  m.start();
  m.work(task_kind::training);
  m.it.version_announced(1, 10, m.now);
  auto const e = m.ask();
  REQUIRE(e.kind == task_kind::evaluation);
  CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = e.lease, .metrics = {1}, .skipped = 2},
                         m.now));
  CHECK_FALSE(m.it.failed());
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK(m.it.finished());
  CHECK(m.it.versions().unevaluated().find("are skipped as damaged") != std::string::npos);
  CHECK_FALSE(m.take<evaluation_done>());
}

TEST_CASE("where an evaluation fails while the model is trained, the job fails at once") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 2;
  o.max_retries = 1;
  master m(o);
  m.start();
  m.ask();
  m.it.version_reached({1, 2, true, false}, m.now);
  auto const e = m.ask();
  CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = e.lease, .error = "torn"}, m.now));
  CHECK(m.it.failed());
}

TEST_CASE("more damaged records than may be left out end the job, of whatever kind") {
  for (auto const& [type, kind] : {std::pair{job_type::training_only, task_kind::training},
                                   {job_type::prediction_only, task_kind::prediction},
                                   {job_type::evaluation_only, task_kind::evaluation}}) {
    auto o = small(type);
    o.max_damaged = 0.1f;  // 2 of 20, or one
    master m(o);
    m.start();
    std::uint64_t const may = type == job_type::training_only ? 2 : 1;
    auto const skip = [&](std::uint64_t n) {
      auto const t = m.ask();
      REQUIRE(t.kind == kind);
      CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}, .skipped = n},
                             m.now));
    };
    skip(may);
    CHECK_FALSE(m.it.failed());
    skip(1);
    CHECK(m.it.failed());
    CHECK(m.it.reason().find("records are skipped as damaged, and --max_damaged=0.1 allows") !=
          std::string::npos);
  }
}

TEST_CASE("a version that has been evaluated is not evaluated once more at the end") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 10;
  master m(o);
  m.start();
  for (int i = 0; i < 5; ++i) m.done(m.ask());
  m.it.version_announced(1, 10, m.now);
  m.it.version_reached({1, 10, true, false}, m.now);  // its message came late
  CHECK(m.take<release_frozen>()->version == 10);
  CHECK(m.work(task_kind::evaluation, {1}) == 2);
  CHECK(m.take<evaluation_done>());
  CHECK(!m.take<evaluation_done>());
  CHECK(m.it.finished());
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
  CHECK(m.done(a, 0, {4}));
  auto const b = m.ask();
  // The model is what it was: what is done stays done.
  m.it.left(role::server, 0, 1, m.now);
  CHECK(!m.take<find_restore_point>());
  CHECK(!m.done(b, 0, {2}));
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

TEST_CASE("where evaluations decide on something, a checkpoint waits for those before it") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 2;
  o.checkpoint = true;
  o.judges = true;
  master m(o);
  m.start();
  m.it.version_reached({1, 4, true, true}, m.now);
  CHECK(!m.take<write_checkpoint>());
  for (task_reply t = m.ask(); t.kind == task_kind::evaluation; t = m.ask())
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}}, m.now));
  CHECK(m.take<evaluation_done>()->result.evaluated.version == 4);
  CHECK(!m.take<release_frozen>());  // until it is judged
  CHECK(!m.it.remembered().evaluated);
  CHECK(!m.take<write_checkpoint>());
  m.it.judged(4, m.now);
  CHECK(m.it.remembered().evaluated == 4);
  auto const commands = m.it.take_commands();
  CHECK(std::ranges::any_of(commands, [](command const& c) {
    auto const* const r = std::get_if<release_frozen>(&c);
    return r && r->version == 4 && r->evaluation;
  }));
  CHECK(std::ranges::any_of(commands, [](command const& c) {
    auto const* const w = std::get_if<write_checkpoint>(&c);
    return w && w->version == 4;
  }));
  m.it.judged(4, m.now);  // told twice
  CHECK(m.it.take_commands().empty());
}

TEST_CASE("a checkpoint that waits is dropped for a newer one that waits for an evaluation") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 4;
  o.checkpoint = true;
  o.judges = true;
  master m(o);
  m.start();
  m.it.version_reached({1, 2, false, true}, m.now);
  CHECK(m.take<write_checkpoint>()->version == 2);
  m.it.version_reached({1, 3, false, true}, m.now);
  CHECK(!m.take<release_frozen>());
  m.it.version_reached({1, 4, true, true},
                       m.now);  // of two checkpoints members keep 2, which is written, and 4
  auto const dropped = m.take<release_frozen>();
  REQUIRE(dropped);
  CHECK(dropped->version == 3);
  CHECK_FALSE(dropped->evaluation);
  m.it.checkpoint_written(1, 2, {}, m.now);
  CHECK(!m.take<write_checkpoint>());
  for (task_reply t = m.ask(); t.kind == task_kind::evaluation; t = m.ask())
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}}, m.now));
  m.it.judged(4, m.now);
  CHECK(m.take<write_checkpoint>()->version == 4);
}

TEST_CASE("tasks have the rate that evaluations have decided, but not beyond what the job goes back behind") {
  auto o = small(job_type::training_with_evaluation);
  o.evaluation_steps = 2;
  o.judges = true;
  master m(o);
  m.it.set_rates({{0, 0.5f}});  // of an earlier process
  m.start();
  auto const rate = [&] {
    auto const t = m.ask();
    CHECK(t.kind == task_kind::training);
    CHECK(m.done(t));
    return t.rate;
  };
  CHECK(rate() == 0.5f);
  m.it.version_reached({1, 4, true, false}, m.now);
  for (task_reply t = m.ask(); t.kind == task_kind::evaluation; t = m.ask()) {
    CHECK(t.rate == 1);
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}}, m.now));
  }
  m.it.judged(4, m.now, "", {.rates = {{0, 0.5f}, {4, 0.25f}}});
  CHECK(rate() == 0.25f);
  // What cannot be stored decides nothing.
  m.it.version_reached({1, 6, true, false}, m.now);
  for (task_reply t = m.ask(); t.kind == task_kind::evaluation; t = m.ask())
    CHECK(m.it.report_task({.worker = 0, .incarnation = 1, .lease = t.lease, .metrics = {1}}, m.now));
  m.it.judged(6, m.now, "the disk is full", {.rates = {{6, 0.125f}}});
  CHECK(rate() == 0.25f);
  // Without a checkpoint the job goes back to its start.
  m.it.left(role::server, 1, 1, m.now);
  CHECK(m.join(role::server, 1, 2));
  if (auto const asked = m.take<find_restore_point>())
    m.it.restore_point_found(asked->generation, std::nullopt, m.now);
  m.configured(2);
  m.it.judged(4, m.now, "", {.stops = true, .rates = {{0, 0.5f}, {4, 0.25f}}});  // written too late
  CHECK(rate() == 0.5f);
}

}  // namespace coordinator_evaluation_test
