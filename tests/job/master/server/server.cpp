// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/server.hpp"

#include <doctest/doctest.h>

#include "job/master/served_master.hpp"

namespace server_test {

using namespace served_master;

TEST_CASE("what a job waits for is told when it makes no step, and taken back when it does") {
  std::atomic<bool> willing{false};
  server_process s([&](std::uint16_t, edl::bytes) -> std::string {
    if (!willing) throw call_error(status::not_ready, "the disk is busy");
    return configured();
  });
  master_process m([](server_options& o) { o.step_timeout = 300ms; });
  CHECK(eventually([&] { return m.waits(true) == ""; }));  // what another master has left is taken back
  CHECK(m.join(s));
  CHECK(eventually([&] {
    auto const told = m.waits().value_or("");
    return told.starts_with("no step for ") &&
           told.find("server 0 to take the state of generation 1; ps-0 to answer 'configure' (for ") !=
               std::string::npos &&
           told.find("the disk is busy") != std::string::npos;
  }));
  willing = true;
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(eventually([&] { return m.waits()->find("'configure'") == std::string::npos; }));
}

TEST_CASE("the successor of a master whose job was finished tells it to whoever has not heard it") {
  master_process m([](server_options& o) { o.before = persisted_state{.generation = 3, .finished = true}; });
  CHECK(m.ended() == "");
  edl::wire::JoinRequest r;
  r.set_incarnation(1);
  CHECK(edl::wire::unpack<edl::wire::JoinReply>(m.ask(method::join, r), "master").over());
  edl::wire::Heartbeat beat;
  beat.set_incarnation(1);
  CHECK(edl::wire::unpack<edl::wire::HeartbeatReply>(m.ask(method::heartbeat, beat), "master").finished());
}

TEST_CASE("what the process around a master cannot do any more ends the job with its reason") {
  master_process m;
  m.on_node([&] { m.it->fail("the cluster cannot be followed"); });
  CHECK(eventually([&] { return m.ended() == "the cluster cannot be followed"; }));
}

}  // namespace server_test
