// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a job with servers: what is written, and what a lost server takes back to.
#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"
#include "job/master/master_with_servers.hpp"

namespace coordinator_checkpoints_test {

using namespace master_with_servers;

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
  CHECK(r->role == role::server);
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
  CHECK(m.it.versions().evaluations().idle());
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

TEST_CASE("a server lost at the very end takes the job back, not to its end") {
  auto o = small();
  o.final_checkpoint = true;
  master m(o);
  m.start();
  CHECK(m.work(task_kind::training) == 5);
  m.it.version_announced(1, 10, m.now);
  m.it.left(role::server, 1, 1, m.now);
  m.it.checkpoint_written(1, 10, {}, m.now);
  CHECK(!m.it.finished());
  m.it.restore_point_found(2, std::nullopt, m.now);
  m.join(role::server, 1, 2);
  m.configured(2);
  CHECK(m.work(task_kind::training) == 5);
  while (m.take<write_checkpoint>()) {
  }
  m.it.version_announced(2, 10, m.now);
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
  m.it.version_announced(1, 10, m.now);
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

}  // namespace coordinator_checkpoints_test
