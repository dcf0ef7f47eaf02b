// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "job/master/driven_master.hpp"

namespace scale_test {

using namespace edl::master;

namespace {

using master = driven_master;

job_options options(std::uint32_t servers, std::uint32_t ranges) {
  job_options o;
  o.training = {{"t", 400}};
  o.minibatch_size = 2;
  o.num_workers = 2;
  o.num_servers = servers;
  o.ranges = ranges;
  return o;
}

}  // namespace

TEST_CASE("workers are started and told to leave; who leaves is not replaced") {
  master m(options(0, 0));
  for (std::uint32_t id : {0, 1}) m.it.join({role::worker, id, 1, {}, 5}, m.now);
  CHECK(m.it.scale({.workers = 4}, m.now).empty());
  auto const started = m.take_all<start_process>();
  REQUIRE(started.size() == 2);
  CHECK((started[0].id == 2 && started[1].id == 3));
  for (std::uint32_t id : {2, 3}) m.it.join({role::worker, id, 1, {}, 5}, m.now);
  m.take_all<log_line>();
  CHECK(m.it.scale({.workers = 1, .why = "a service needs room"}, m.now).empty());
  CHECK(m.take_all<log_line>().at(0).text == "Scaling from 4 to 1 worker: a service needs room");
  auto const stopped = m.take_all<stop_process>();
  REQUIRE(stopped.size() == 3);
  CHECK((stopped[0].id == 3 && stopped[1].id == 2 && stopped[2].id == 1));
  for (std::uint32_t id : {1, 2, 3}) {
    m.it.left(role::worker, id, 1, m.now);
    m.it.exited(role::worker, id, exit_kind::preempted, "exited with code 0", m.now);
  }
  CHECK(m.take_all<replace_process>().empty());
  m.it.exited(role::worker, 0, exit_kind::preempted, "killed", m.now);
  CHECK(m.take_all<replace_process>().size() == 1);
}

TEST_CASE("fewer servers are wanted while all are there but one that is not wanted any more: they begin") {
  master m(options(2, 4));
  CHECK(m.it.scale({.servers = 3}, m.now).empty());
  for (std::uint32_t id : {0, 1}) m.it.join({role::server, id, 1, {}, 5}, m.now);
  CHECK_FALSE(m.take<configure_servers>());
  CHECK(m.it.scale({.servers = 2}, m.now).empty());
  CHECK(m.take<configure_servers>());
}

TEST_CASE("what cannot be is refused") {
  master m(options(2, 3));
  CHECK(m.it.scale({.workers = 0}, m.now).find("--num_workers=0") == 0);
  CHECK(m.it.scale({.servers = 4}, m.now).find("--num_ps_pods=4") == 0);
  CHECK(m.it.scale({.servers = 0}, m.now).find("--num_ps_pods=0") == 0);
  master none(options(0, 0));
  CHECK(none.it.scale({.servers = 1}, none.now).find("this job has no servers") != std::string::npos);
}

TEST_CASE("ranges move to servers that come, and from servers that go, which stay until all is elsewhere") {
  master m(options(1, 3));
  m.it.join({role::server, 0, 1, {}, 5}, m.now);
  auto first = m.take_all<configure_servers>();
  REQUIRE(first.size() == 1);
  CHECK(first[0].places == std::vector<range_place>(3));
  m.answer(first[0]);

  CHECK(m.it.scale({.servers = 3}, m.now).empty());
  CHECK(m.take_all<start_process>().size() == 2);
  for (std::uint32_t id : {1, 2}) {
    CHECK(m.it.join({role::server, id, 1, {}, 5}, m.now).accepted);
    auto const c = m.take_all<configure_servers>();
    REQUIRE(c.size() == 1);
    CHECK(c[0].keep);
    CHECK((c[0].sources == std::vector<std::uint32_t>(3, 0)) == (id == 1));
    m.answer(c[0]);
  }
  CHECK(m.it.generations().places() == std::vector<range_place>{{0, {}}, {1, {}}, {2, {}}});

  CHECK(m.it.scale({.servers = 1}, m.now).empty());
  auto const less = m.take_all<configure_servers>();
  REQUIRE(less.size() == 1);
  CHECK(less[0].sources == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(less[0].servers.size() == 3);
  CHECK(less[0].places == std::vector<range_place>(3));
  CHECK(m.take_all<stop_process>().empty());
  m.answer(less[0]);
  auto const stopped = m.take_all<stop_process>();
  REQUIRE(stopped.size() == 2);
  CHECK((stopped[0].id == 1 && stopped[1].id == 2 && stopped[0].role == role::server));
  CHECK(m.it.servers().all().size() == 1);
  CHECK_FALSE(m.it.join({role::server, 2, 2, {}, 5}, m.now).accepted);
  // They may ask before the platform tells them to stop, and also when another is to come in their place.
  auto const hears = [&](std::uint32_t id, std::uint64_t incarnation) {
    heartbeat_reply const reply = m.it.heartbeat(role::server, id, incarnation, {}, m.now);
    return !reply.known && !reply.stranger && reply.spare;
  };
  CHECK((hears(1, 1) && hears(2, 1)));
  CHECK(m.it.scale({.servers = 3}, m.now).empty());
  CHECK(m.take_all<start_process>().size() == 2);
  CHECK(m.it.join({role::server, 2, 3, {}, 5}, m.now).accepted);
  CHECK(hears(2, 1));
  // Nor is one refused that asks to join again, as the answer to its first request was lost.
  CHECK(m.it.join({role::server, 2, 1, {}, 5}, m.now).spare);
  CHECK_FALSE(m.it.join({role::server, 2, 3, {}, 5}, m.now).spare);
  m.it.exited(role::server, 2, exit_kind::failed, "it crashed", m.now);
  CHECK_FALSE(hears(2, 3));
}

TEST_CASE("a server that comes when there are to be fewer again ends, and has done nothing wrong") {
  job_options o = options(1, 3);
  SUBCASE("a platform has started it") { o.starts_all = true; }
  SUBCASE("somebody has started it by hand: it may be a mistake") {}
  master m(o);
  CHECK(m.it.scale({.servers = 3}, m.now).empty());
  CHECK(m.it.scale({.servers = 1}, m.now).empty());
  join_reply const reply = m.it.join({role::server, 2, 1, {}, 5}, m.now);
  CHECK_FALSE(reply.accepted);
  CHECK(reply.spare == o.starts_all);
  CHECK(m.said("is refused") == !o.starts_all);
  // One that has been a member of another master has been wanted.
  CHECK(m.it.join({.role = role::server, .id = 2, .incarnation = 1, .layout = 5, .heard = 4}, m.now).spare);
  CHECK_FALSE(m.it.join({role::server, 0, 1, {}, 5}, m.now).spare);
}

TEST_CASE("a server that was to go, and is wanted again before it has gone, stays and is not started") {
  master m(options(2, 3));
  for (std::uint32_t id : {0, 1}) m.it.join({role::server, id, 1, {}, 5}, m.now);
  m.answer(m.take_all<configure_servers>().back());
  CHECK(m.it.scale({.servers = 1}, m.now).empty());
  CHECK(m.it.scale({.servers = 3}, m.now).empty());
  auto const started = m.take_all<start_process>();
  REQUIRE(started.size() == 1);
  CHECK(started[0].id == 2);
  auto const all = m.take_all<configure_servers>();
  REQUIRE_FALSE(all.empty());
  CHECK(all.back().servers.size() == 2);
  CHECK(std::ranges::any_of(all.back().places, [](range_place const& p) { return p.primary == 1; }));
  m.answer(all.back());
  CHECK(m.take_all<stop_process>().empty());
}

TEST_CASE("a server that comes to a new master, and is one too many, is a source of its ranges once more") {
  job_options o = options(3, 3);
  o.server_copies = 2;
  persisted_state before{.generation = 4, .members = 2, .wanted_servers = 3};
  before.servers = {.next = 3, .lines = {{0, 0, false}, {1, 0, false}, {2, 0, false}}};
  master m(o, before);
  CHECK(m.it.scale({.servers = 2}, m.now).empty());
  CHECK_FALSE(m.it.join({role::server, 2, 1, {}, 5}, m.now).accepted);
  CHECK(m.it.join({role::server, 0, 1, {}, 5, 4, {0, 2}}, m.now).accepted);
  CHECK(m.it.join({role::server, 2, 1, {}, 5, 4, {1, 2}}, m.now).accepted);
  CHECK(m.it.join({role::server, 1, 1, {}, 5, 4, {0, 1}}, m.now).accepted);
  auto const all = m.take_all<configure_servers>();
  REQUIRE_FALSE(all.empty());
  CHECK(all.back().keep);
  CHECK(all.back().servers.size() == 3);
  SUBCASE("it is lost before it has handed them over") {
    m.it.exited(role::server, 2, exit_kind::failed, "it crashed", m.now);
    CHECK(m.take_all<replace_process>().empty());
    CHECK(m.it.scale({.servers = 3}, m.now).empty());
    CHECK(m.take_all<start_process>().at(0).id == 2);
    return;
  }
  m.answer(all.back());
  auto const stopped = m.take_all<stop_process>();
  REQUIRE(stopped.size() == 1);
  CHECK((stopped[0].id == 2 && stopped[0].role == role::server));
  m.it.exited(role::server, 2, exit_kind::preempted, "exited with code 0", m.now);
  CHECK(m.take_all<replace_process>().empty());
}

TEST_CASE("a server that is one too many, and alone has the ranges, stays until another has come") {
  persisted_state before{.generation = 4, .members = 2, .wanted_servers = 2};
  before.servers = {.next = 2, .lines = {{0, 0, false}, {1, 0, false}}};
  master m(options(2, 3), before);
  CHECK(m.it.join({role::server, 1, 1, {}, 5, 4, {0, 1, 2}}, m.now).accepted);
  CHECK(m.it.scale({.servers = 1}, m.now).empty());
  m.it.tick(m.now);
  CHECK_FALSE(m.take<configure_servers>());  // the one that lacks may come
  m.now += options(2, 3).gathering;
  m.it.tick(m.now);
  auto const alone = m.take_all<configure_servers>();
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].places == std::vector<range_place>(3, {1, {}}));
  m.answer(alone[0]);
  CHECK(m.take_all<stop_process>().empty());

  CHECK(m.it.join({role::server, 0, 1, {}, 5}, m.now).accepted);
  auto const both = m.take_all<configure_servers>();
  REQUIRE(both.size() == 1);
  CHECK(both[0].keep);
  CHECK(both[0].places == std::vector<range_place>(3));
  m.answer(both[0]);
  auto const stopped = m.take_all<stop_process>();
  REQUIRE(stopped.size() == 1);
  CHECK((stopped[0].id == 1 && stopped[0].role == role::server));
}

}  // namespace scale_test
