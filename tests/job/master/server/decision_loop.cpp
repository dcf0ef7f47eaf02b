// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/decision_loop.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "job/master/held_disk.hpp"
#include "job/master/served_master.hpp"

namespace decision_loop_test {

using namespace served_master;

TEST_CASE("a journal whose disk comes back is written without another event") {
  scratch const dir;
  std::string const path = dir.path() + "/gone/journal.json";
  master_process m([&](server_options& o) { o.journal = journal(path, "run"); });
  m.on_node([&] { m.it->listens_at({"tcp:127.0.0.1:1"}); });
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::create_directories(dir.path() + "/gone");
  CHECK(eventually([&] { return std::filesystem::exists(path); }));
  CHECK(journal(path, "run").read()->generation == 1);
}

TEST_CASE("a decision that cannot be carried out ends the job, though nobody calls the master any more") {
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m;
  m.around.replaces = [] { throw edl::error("no more processes"); };
  m.kill(role::server, 0);
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended() == "the master cannot carry out a decision: no more processes");
}

TEST_CASE("work that fails when the journal has what it waits for ends the job") {
  master_process m;
  m.on_node([&] { m.it->when_kept([] { throw edl::error("no more processes"); }); });
  REQUIRE(eventually([&] { return m.ended().has_value(); }));
  CHECK(m.ended() == "the master cannot carry out a decision: no more processes");
}

TEST_CASE(
    "while the disk stands still members are answered, and nobody hears of what is not in the journal") {
  scratch const dir;
  std::string const path = dir / "journal.json";
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  std::optional<held_disk::hold> disk(std::in_place);
  master_process m([&](server_options& o) {
    o.journal = journal(path, "run");
    o.step_timeout = 50ms;
  });
  CHECK(m.join(s));
  CHECK(m.join_worker());
  edl::wire::Heartbeat beat;
  beat.set_role(edl::wire::JoinRequest::SERVER);
  beat.set_incarnation(1);
  for (int i = 0; i < 10; ++i)
    CHECK(edl::wire::unpack<edl::wire::HeartbeatReply>(m.ask(method::heartbeat, beat), "master").known());
  CHECK(eventually(
      [&] { return m.waits().value_or("").find("the journal to be written") != std::string::npos; }));
  CHECK(s.asked == 0);
  CHECK_FALSE(std::filesystem::exists(path));
  // A request for what a generation is part of waits, and is answered.
  edl::wire::TaskRequest task;
  task.set_incarnation(1);
  std::atomic<bool> told{false};
  std::thread asks([&] {
    auto const reply = edl::wire::unpack<edl::wire::Task>(m.ask(method::task, task), "master");
    told = true;
    CHECK(journal(path, "run").read()->generation >= reply.generation());
  });
  // A reply that did not wait would come before those to these.
  for (int i = 0; i < 200; ++i) m.ask(method::heartbeat, beat);
  CHECK_FALSE(told);
  disk.reset();
  asks.join();
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(s.asked == 1);
}

TEST_CASE("the numbers of worlds are in the journal before they are used: the next one waits for no disk") {
  scratch const dir;
  std::string const path = dir / "journal.json";
  master_process m([&](server_options& o) {
    o.journal = journal(path, "run");
    o.job.replicas = true;
    o.job.num_servers = 0;
  });
  edl::wire::JoinRequest join;
  join.set_role(edl::wire::JoinRequest::WORKER);
  join.set_incarnation(1);
  join.add_addresses("tcp:127.0.0.1:1");
  m.ask(method::join, join);
  auto const enter = [&](std::uint64_t last) {
    edl::wire::EnterRequest r;
    r.set_incarnation(1);
    r.set_last(last);
    return edl::wire::unpack<edl::wire::World>(m.ask(method::enter, r), "master").number();
  };
  CHECK(enter(0) == 1);
  held_disk::hold const disk;
  for (std::uint64_t last = 1; last < 16; ++last) CHECK(enter(last) == last + 1);
  held_disk::release();
  CHECK(enter(16) == 17);
  CHECK(journal(path, "run").read()->generation == 32);
}

}  // namespace decision_loop_test
