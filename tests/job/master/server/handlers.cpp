// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/handlers.hpp"

#include <doctest/doctest.h>

#include "job/master/served_master.hpp"

namespace handlers_test {

using namespace served_master;

TEST_CASE("a worker whose answer was lost gets the same again") {
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m;
  CHECK(m.join(s));
  CHECK(m.join_worker());
  REQUIRE(eventually([&] { return m.ready(); }));
  auto const task = [&](std::uint64_t number) {
    edl::wire::TaskRequest r;
    r.set_incarnation(1);
    r.set_number(number);
    return edl::wire::unpack<edl::wire::Task>(m.ask(method::task, r), "master");
  };
  auto const report = [&](std::uint64_t lease, std::uint64_t number) {
    edl::wire::TaskReport r;
    r.set_incarnation(1);
    r.set_lease(lease);
    r.set_number(number);
    return edl::wire::unpack<edl::wire::TaskReportReply>(m.ask(method::report, r), "master").accepted();
  };
  auto const first = task(1);
  CHECK(first.kind() == edl::wire::Task::TRAINING);
  CHECK(task(1).lease() == first.lease());
  CHECK(m.on_node([&] { return m.it->decisions().tasks()->leased(); }) == 1);
  auto const second = task(2);
  CHECK(second.lease() != first.lease());
  CHECK(report(first.lease(), 3));
  CHECK(report(first.lease(), 3));
  CHECK_FALSE(report(first.lease(), 4));
  CHECK_THROWS_AS(task(2), call_error);  // an old one that was on its way for long changes nothing
  CHECK(m.on_node([&] { return m.it->decisions().tasks()->leased(); }) == 1);
}

TEST_CASE("workers measure their machines in turns, and what they send for it is bounded") {
  master_process m;
  std::vector<std::byte> const bytes(edl::wire::most_probe_bytes + 1);
  edl::net::node client(peers::options());
  edl::net::channel to(client, m.listener->addresses(), "the master");
  auto const probe = [&](std::size_t size, std::chrono::milliseconds timeout = 10s) {
    edl::net::outgoing what{.method = method::probe, .timeout = timeout};
    if (size > 0) what.payload.push_back(std::span(bytes).first(size));
    return edl::net::start(to, std::move(what));
  };
  CHECK_THROWS_AS(probe(bytes.size()).get(), call_error);
  CHECK_NOTHROW(probe(0).get());
  CHECK_THROWS_AS(probe(0, 50ms).get(), call_error);
  auto next = probe(0);
  CHECK_NOTHROW(probe(edl::wire::most_probe_bytes).get());  // the end of the first one's turn
  CHECK_NOTHROW(next.get());
}

}  // namespace handlers_test
