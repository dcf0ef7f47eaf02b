// SPDX-License-Identifier: Apache-2.0
// Members whose machines are about to go.
#include <doctest/doctest.h>

#include "job/master/master_with_servers.hpp"
#include "job/master/replicated_master.hpp"

namespace notice_test {

using namespace edl::master;
using std::chrono::seconds;

namespace {

constexpr char const* soon = "AWS will terminate its machine at 10:39";

heartbeat_reply beat(driven_master& m, role of, std::uint32_t id, std::string const& notice = soon,
                     std::uint64_t incarnation = 1) {
  return m.it.heartbeat(of, id, incarnation, {.notice = notice}, m.now);
}

job_options with_servers(std::uint32_t servers, unsigned copies = 1) {
  job_options o;
  o.training = {{"t", 400}};
  o.minibatch_size = 2;
  o.num_workers = 2;
  o.num_servers = servers;
  o.ranges = 4;
  o.server_copies = copies;
  return o;
}

std::vector<std::uint32_t> ids_of(std::vector<stop_process> const& all) {
  std::vector<std::uint32_t> ids;
  for (auto const& c : all) ids.push_back(c.id);
  return ids;
}

using list = std::vector<std::uint32_t>;

/// All servers of a job have joined and are configured.
struct served : driven_master {
  explicit served(std::uint32_t servers, unsigned copies = 1) : driven_master(with_servers(servers, copies)) {
    for (std::uint32_t id = 0; id < servers; ++id) join(role::server, id);
    configured();
    REQUIRE(it.ready());
    take_all<log_line>();
  }
};

}  // namespace

TEST_CASE("a worker with notice gets a successor elsewhere, hands its task over, and is not lost") {
  master_with_servers::master m(master_with_servers::small());
  m.start();
  m.join(role::worker, 1);
  auto const t = m.ask(1);
  REQUIRE(t.kind == edl::task_kind::training);
  CHECK_FALSE(beat(m, role::worker, 1, "").leave);
  CHECK_FALSE(m.take<evade_place>());
  CHECK(beat(m, role::worker, 1).leave);
  CHECK(m.said("worker 1 is about to leave: it has notice: AWS will terminate its machine at 10:39"));
  auto const place = m.take<evade_place>();
  REQUIRE(place);
  CHECK((place->role == role::worker && place->id == 1));
  auto const started = m.take_all<start_process>();
  REQUIRE(started.size() == 1);
  CHECK((started[0].id == 2 && started[0].instead_of == 1));
  CHECK(ids_of(m.take_all<stop_process>()) == list{1});
  CHECK_FALSE(m.take<avoid_place>());  // the machine's name may come again
  // It is told until it has left, and ordered once.
  CHECK(beat(m, role::worker, 1).leave);
  CHECK(m.it.report_task({.worker = 1, .incarnation = 1, .lease = t.lease, .returned = true, .applied = 1},
                         m.now));
  m.it.left(role::worker, 1, 1, m.now);
  m.it.exited(role::worker, 1, exit_kind::preempted, "exited with code 0", m.now);
  CHECK(m.take_all<stop_process>().empty());
  CHECK(m.take_all<start_process>().empty());
  CHECK(m.take_all<replace_process>().empty());
  CHECK(m.it.progress().lost == 0);
  auto const again = m.ask(0);
  CHECK(again.key == t.key);
  CHECK(again.applied == 1);
}

TEST_CASE("a worker that is killed in spite of its notice has its successor already") {
  master_with_servers::master m(master_with_servers::small());
  m.start();
  m.join(role::worker, 1);
  beat(m, role::worker, 1);
  CHECK(m.take_all<start_process>().size() == 1);
  m.it.exited(role::worker, 1, exit_kind::preempted, "was killed by signal 9", m.now);
  m.pass(seconds(30));
  CHECK(m.take_all<replace_process>().empty());
  CHECK(m.take_all<start_process>().empty());
  CHECK(m.it.progress().lost == 1);
}

TEST_CASE("the only worker trains on until its successor has joined, and so do those that all have notice") {
  for (bool const both : {true, false}) {
    CAPTURE(both);
    master_with_servers::master m(master_with_servers::small());
    m.start();
    CHECK_FALSE(beat(m, role::worker, 0).leave);
    CHECK(m.take_all<start_process>().size() == 1);
    m.join(role::worker, 2);
    if (both) CHECK_FALSE(beat(m, role::worker, 2).leave);
    CHECK(m.take_all<start_process>().size() == both);
    CHECK(beat(m, role::worker, 0).leave == !both);
    m.join(role::worker, 3);
    CHECK(beat(m, role::worker, 0).leave);
  }
}

TEST_CASE("a member has notice of its own incarnation only, and a stranger has none") {
  master_with_servers::master m(master_with_servers::small());
  m.start();
  m.join(role::worker, 1);
  CHECK_FALSE(beat(m, role::worker, 7).leave);
  CHECK_FALSE(beat(m, role::worker, 1, soon, 99).leave);
  CHECK(m.take_all<start_process>().empty());
  CHECK(beat(m, role::worker, 1).leave);
  m.it.left(role::worker, 1, 1, m.now);
  m.join(role::worker, 1, 2);
  CHECK_FALSE(beat(m, role::worker, 1, "", 2).leave);
}

TEST_CASE("nobody is moved from a job that is being suspended, or over") {
  master_with_servers::master m(master_with_servers::small());
  m.start();
  m.join(role::worker, 1);
  m.it.suspend(m.now);
  CHECK_FALSE(beat(m, role::worker, 1).leave);
  beat(m, role::server, 1);
  CHECK(m.take_all<start_process>().empty());
  m.it.fail("enough");
  CHECK_FALSE(beat(m, role::worker, 1).leave);
  CHECK_FALSE(m.take<evade_place>());
}

TEST_CASE("a server with notice gives its ranges to others, and is then started elsewhere") {
  for (unsigned const copies : {1u, 2u}) {
    CAPTURE(copies);
    served m(3, copies);
    auto const t = [&] {
      m.join(role::worker, 0);
      return m.ask();
    }();
    CHECK(t.kind == edl::task_kind::training);
    CHECK_FALSE(beat(m, role::server, 1).leave);
    CHECK(m.said("server 1 is about to leave: it has notice: AWS will terminate its machine at 10:39"));
    auto const place = m.take<evade_place>();
    REQUIRE(place);
    CHECK((place->role == role::server && place->id == 1));
    CHECK(m.take_all<replace_process>().empty());  // it still has what others copy
    auto const c = m.take<configure_servers>();
    REQUIRE(c);
    CHECK(c->keep);
    CHECK(c->servers == std::set<std::uint32_t>{0, 1, 2});
    for (auto const& p : c->places) {
      CHECK(p.primary != 1);
      CHECK(p.backup != 1);
      CHECK(p.backup.has_value() == (copies == 2));
    }
    beat(m, role::server, 1);
    CHECK_FALSE(m.take<configure_servers>());
    m.answer(*c, {}, 7);
    REQUIRE(m.it.ready());
    auto const replaced = m.take_all<replace_process>();
    REQUIRE(replaced.size() == 1);
    CHECK((replaced[0].role == role::server && replaced[0].id == 1 && replaced[0].with == 1));
    CHECK(m.it.servers().all().size() == 2);
    CHECK(m.it.progress().lost == 0);
    CHECK_FALSE(m.take<find_restore_point>());
    // By hand nobody stops it: it hears that it is not needed.
    auto const last = beat(m, role::server, 1);
    CHECK_FALSE(last.known);
    CHECK(last.spare);
    m.it.exited(role::server, 1, exit_kind::preempted, "exited with code 0", m.now);
    // Its successor gets its ranges back.
    CHECK(m.join(role::server, 1, 2));
    auto const back = m.configured({}, 7);
    CHECK(back.keep);
    CHECK(back.places[1].primary == 1);
    CHECK(m.it.ready());
  }
}

TEST_CASE("a server that is lost with what others copy from it: all go back, once") {
  served m(2);
  beat(m, role::server, 0);
  CHECK(m.take<configure_servers>());
  m.it.hung_up(role::server, 0, 1, m.now);
  CHECK(m.take<find_restore_point>());
  // The next process of that number has no notice.
  m.it.exited(role::server, 0, exit_kind::preempted, "was killed", m.now);
  m.join(role::server, 0, 2);
  m.it.restore_point_found(m.it.generation(), std::nullopt, m.now);
  auto const c = m.configured();
  CHECK_FALSE(c.keep);
  CHECK(c.places[0].primary == 0);
}

TEST_CASE("the only server has notice: another one stands in for it, until its successor has all") {
  auto o = with_servers(1);
  o.starts_all = true;
  driven_master m(o);
  m.join(role::server, 0);
  m.configured();
  REQUIRE(m.it.ready());
  CHECK_FALSE(m.it.join({role::server, 1, 5, {}, 5}, m.now).accepted);
  beat(m, role::server, 0);
  CHECK(m.said("server 1 is started to stand in for 0"));
  auto const started = m.take_all<start_process>();
  REQUIRE(started.size() == 1);
  CHECK((started[0].role == role::server && started[0].id == 1));
  CHECK(m.it.ready());  // meanwhile it goes on
  CHECK(m.it.join({role::server, 1, 6, {}, 5}, m.now).accepted);
  auto c = m.configured({}, 9);
  CHECK(c.keep);
  for (auto const& p : c.places) CHECK(p.primary == 1);
  CHECK(m.take<replace_process>()->id == 0);
  CHECK(m.it.ready());
  m.join(role::server, 0, 2);
  c = m.configured({}, 12);
  CHECK(c.keep);
  for (auto const& p : c.places) CHECK(p.primary == 0);
  CHECK(m.take<stop_process>()->id == 1);
  CHECK(m.it.servers().all().size() == 1);
  CHECK(m.it.progress().lost == 0);
  CHECK_FALSE(m.take<find_restore_point>());
  // It is not needed again.
  CHECK(m.it.join({role::server, 1, 7, {}, 5}, m.now).spare);
}

TEST_CASE("one server at a time stands in") {
  driven_master m(with_servers(1));
  m.join(role::server, 0);
  m.configured();
  beat(m, role::server, 0);
  m.join(role::server, 0, 2);  // its successor is on a machine that is about to go, too
  beat(m, role::server, 0, soon, 2);
  CHECK(m.take_all<start_process>().size() == 1);
}

TEST_CASE("a server that was to stand in, and comes too late, is not wanted any more") {
  driven_master m(with_servers(1));
  m.join(role::server, 0);
  m.configured();
  beat(m, role::server, 0);
  CHECK(m.take<start_process>()->id == 1);
  m.it.exited(role::server, 0, exit_kind::preempted, "was killed", m.now);
  CHECK(m.take<replace_process>()->id == 0);
  m.join(role::server, 0, 2);
  m.it.restore_point_found(m.it.generation(), std::nullopt, m.now);
  m.configured();
  CHECK(m.it.ready());
  auto const stopped = m.take<stop_process>();
  REQUIRE(stopped);
  CHECK((stopped->role == role::server && stopped->id == 1));
}

TEST_CASE("both of two servers have notice: the one that stays longer has all, until a successor comes") {
  served m(2);
  beat(m, role::server, 0);
  auto c = m.take<configure_servers>();
  REQUIRE(c);
  CHECK(c->places[0].primary == 1);
  beat(m, role::server, 1);  // there is no other that stays
  CHECK_FALSE(m.take<configure_servers>());
  m.answer(*c, {}, 3);
  REQUIRE(m.take<replace_process>());
  m.join(role::server, 0, 2);
  c = m.take<configure_servers>();
  REQUIRE(c);
  for (auto const& p : c->places) CHECK(p.primary == 0);
  m.answer(*c, {}, 3);
  auto const replaced = m.take<replace_process>();
  REQUIRE(replaced);
  CHECK(replaced->id == 1);
}

TEST_CASE("a worker with a copy of the model leaves when another one has it, too") {
  using replicated_master::copy;
  auto o = replicated_master::replicated();
  o.num_workers = 1;
  replicated_master::master m(o);
  m.start(1);
  auto const notice = [&](std::uint32_t id) { return beat(m, role::worker, id).leave; };
  CHECK_FALSE(notice(0));
  CHECK(m.take_all<start_process>().at(0).id == 1);
  CHECK(m.follow(1));
  CHECK_FALSE(notice(0));  // it has nothing yet
  m.enter(1, 1, copy(5));
  CHECK_FALSE(notice(0));  // nor is there a world
  m.enter(0, 1, copy(5));
  REQUIRE(m.it.ready());
  CHECK(m.members() == "0* 1*");
  CHECK(notice(0));
  CHECK(ids_of(m.take_all<stop_process>()) == list{0});
  m.it.left(role::worker, 0, 1, m.now);
  m.enter(1, 2, copy(6));
  CHECK(m.members() == "1*");
  CHECK_FALSE(m.take<find_restore_point>());
}

TEST_CASE("workers that move leave when their successors have joined: one first, then twice as many") {
  auto o = master_with_servers::small();
  o.num_workers = 4;
  master_with_servers::master m(o);
  m.start();
  for (std::uint32_t const id : {1, 2, 3}) m.join(role::worker, id);
  m.it.moving({{0, "moves"}, {1, "moves"}, {2, "moves"}, {3, "moves"}, {9, "moves"}});
  std::uint32_t next = 4;
  for (list const& batch : {list{0}, list{1}, list{2, 3}}) {
    for (int i = 0; i < 3; ++i) {
      for (std::uint32_t id = 0; id < next; ++id)
        for (role const of : {role::server, role::worker}) beat(m, of, id, "");
      m.it.tick(m.now += seconds(1));
    }
    REQUIRE(m.take_all<start_process>().size() == batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      CHECK_FALSE(beat(m, role::worker, batch[i], "").leave);
      m.join(role::worker, next++);
    }
    for (std::uint32_t const id : batch) {
      CHECK(beat(m, role::worker, id, "").leave);
      CHECK(beat(m, role::worker, id, "").leave);  // the reply may be lost
      m.it.left(role::worker, id, 1, m.now);
    }
    CHECK(ids_of(m.take_all<stop_process>()) == batch);
  }
  CHECK_FALSE(m.take<evade_place>());
  for (std::uint32_t id = 4; id < 8; ++id) CHECK_FALSE(beat(m, role::worker, id, "").leave);
}

TEST_CASE("a worker whose successor has been started moves, whatever becomes of the reason") {
  master_with_servers::master m(master_with_servers::small());
  m.start();
  m.it.moving({{0, "moves"}});
  m.it.tick(m.now += seconds(1));
  m.join(role::worker, 1);
  m.it.tick(m.now += seconds(1));
  auto const started = m.take_all<start_process>();
  REQUIRE(started.size() >= 1);
  m.it.moving({});
  m.it.tick(m.now += seconds(1));
  CHECK_FALSE(beat(m, role::worker, 0, "").leave);
  m.join(role::worker, started.back().id);
  CHECK(beat(m, role::worker, 0, "").leave);
}

TEST_CASE("a newcomer that has yet to take the model of a world is no reason to leave it, before a step") {
  using replicated_master::copy;
  replicated_master::master m;
  m.start(2);
  m.lose(1);
  m.enter(0, m.it.generation() - 1, copy(4));
  m.join(2);
  m.enter(0, m.it.generation() - 1, copy(4));
  m.enter(2);
  REQUIRE(m.members() == "0* 2");
  CHECK_FALSE(beat(m, role::worker, 0).leave);
  m.it.heartbeat(role::worker, 2, 1, {.version = 5}, m.now);
  CHECK(beat(m, role::worker, 0).leave);
}

}  // namespace notice_test
