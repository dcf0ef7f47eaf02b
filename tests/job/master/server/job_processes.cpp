// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/job_processes.hpp"

#include <doctest/doctest.h>

#include "job/master/held_disk.hpp"
#include "job/master/served_master.hpp"

namespace job_processes_test {

using namespace served_master;
using edl::process_id;

namespace {

using ids = std::vector<process_id>;

struct watched_master : master_process {
  using master_process::master_process;
  ids started() {
    std::lock_guard const guard(around.lock);
    return around.started;
  }
  ids left() {
    return on_node([this] { return it->processes().left(); });
  }
  void found(ids const& running, std::uint32_t next_worker = 0) {
    on_node([&] { it->processes().found({.running = running, .next_worker = next_worker}); });
  }
};

process_id const first_server{role::server, 0}, first_worker{role::worker, 0};

}  // namespace

TEST_CASE("at the start all are started that do not run, and who ends without fault has a successor") {
  watched_master m;
  m.found({first_server});
  CHECK(m.started() == ids{first_worker});
  REQUIRE(m.join_worker());
  m.kill(role::worker, 0);
  CHECK(m.started() == ids{first_worker, {role::worker, 1}});
  CHECK(m.said().find("worker-0 was killed by signal 9") != std::string::npos);
}

TEST_CASE("who is to be started when the journal knows of it is started once, whatever ends meanwhile") {
  scratch const dir;
  std::optional<held_disk::hold> disk(std::in_place);
  watched_master m([&](server_options& o) { o.journal = journal(dir / "journal.json", "run"); });
  m.found({first_worker});
  m.kill(role::server, 0);  // of a master before, told late
  m.kill(role::server, 0);
  m.kill(role::worker, 0);
  m.kill(role::worker, 0);
  disk.reset();
  ids expected{first_server, {role::worker, 1}};
  CHECK(eventually([&] { return m.started() == expected; }));
  m.kill(role::server, 0);
  expected.push_back(first_server);
  CHECK(eventually([&] { return m.started() == expected; }));
}

TEST_CASE("where nobody is to be started again, an end is a failure") {
  watched_master m([](server_options& o) {
    o.relaunch = false;
    o.job.worker_failures = 0;
  });
  m.found({first_server, first_worker});
  m.kill(role::worker, 0);
  CHECK(m.started().empty());
}

TEST_CASE("nobody takes part in a job that is older than its master before it is known who runs") {
  watched_master m({}, true);
  CHECK_THROWS_WITH(m.join_worker(), doctest::Contains("does not know yet which processes run"));
  m.kill(role::worker, 0);  // of the time before
  CHECK_FALSE(m.adopted);
  m.found({first_server, {role::worker, 4}}, 6);
  CHECK(m.adopted == true);
  CHECK(m.started().empty());
  m.kill(role::worker, 4);
  CHECK(m.started() == ids{{role::worker, 6}});
}

TEST_CASE("a master whose job is another's starts nothing any more, and says so once") {
  watched_master m;
  m.found({first_server, first_worker});
  m.on_node([&] {
    m.it->processes().superseded("its pod is gone");
    m.it->processes().superseded("again");
  });
  m.kill(role::worker, 0);
  CHECK(m.started().empty());
  CHECK(m.it->processes().result().get().superseded == "its pod is gone");
  m.on_node([&] { m.it->fail("too late"); });
  CHECK(m.ended() == "");
}

TEST_CASE("a job that is stopped amid its tasks misses nobody who ends or is about to") {
  watched_master m;
  m.found({first_server, first_worker});
  REQUIRE(m.join_worker());
  m.on_node([&] { m.it->processes().end({}); });
  m.on_node([&] { m.it->processes().leaving(first_worker, "is deleted"); });
  m.kill(role::worker, 0);
  CHECK(m.started().empty());
  for (char const* line : {"is started", "is about to leave", "was killed"})
    CHECK(m.said().find(line) == std::string::npos);
}

TEST_CASE("who says goodbye has left, until it is there again") {
  watched_master m;
  REQUIRE(m.join_worker());
  CHECK(m.left().empty());
  edl::wire::LeaveRequest bye;
  bye.set_role(edl::wire::JoinRequest::WORKER);
  bye.set_incarnation(1);
  m.ask(method::leave, bye);
  CHECK(m.left() == ids{first_worker});
  REQUIRE(m.join_worker(2));
  CHECK(m.left().empty());
}

TEST_CASE("workers whose machines are not to be trusted are replaced elsewhere, and fail no job") {
  scratch const dir;
  std::string const path = dir / "journal.json";
  watched_master m([&](server_options& o) {
    o.job.worker_failures = 0;
    o.journal = journal(path, "run");
  });
  m.found({first_server, first_worker});
  for (std::uint32_t id = 0; id < 5; ++id) {
    m.on_node([&] {
      m.it->processes().ended(
          {.who = {role::worker, id}, .code = edl::platform::bad_machine, .words = "is on a bad machine"}, 0);
    });
    REQUIRE(eventually([&] { return m.started().size() == id + 1; }));
  }
  CHECK_FALSE(m.ended());
  m.on_node([&] {
    REQUIRE(m.around.avoided.size() == 5);
    CHECK(m.around.avoided[4].first == process_id{role::worker, 4});
    CHECK(m.around.avoided[4].second == "is on a bad machine");
  });
  // For the master after this one.
  CHECK(eventually([&] {
    auto const kept = journal(path, "run").read();
    return kept && kept->avoided.size() == 5 && kept->avoided[4] == "node-4";
  }));
}

}  // namespace job_processes_test
