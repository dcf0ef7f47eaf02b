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

namespace {

/// A member's connection, on which it waits for news.
struct watching {
  edl::net::node node{peers::options()};
  std::unique_ptr<edl::net::channel> to;
  edl::net::started_call call;

  watching(master_process& m, std::uint32_t id)
      : to(std::make_unique<edl::net::channel>(node, m.listener->addresses(), "the master")),
        call(start(id)) {
    // Calls of one connection are begun in their order.
    edl::wire::Heartbeat beat;
    beat.set_id(id);
    beat.set_incarnation(1);
    edl::net::wait(*to, {.method = method::heartbeat, .message = edl::wire::pack(beat)});
  }
  edl::net::started_call start(std::uint32_t id) {
    edl::wire::WatchRequest r;
    r.set_id(id);
    r.set_incarnation(1);
    r.set_generation(1000);
    return edl::net::start(*to, {.method = method::watch, .message = edl::wire::pack(r)});
  }
};

}  // namespace

TEST_CASE("the end of an old connection is no news of a member that waits on a new one") {
  master_process m([](server_options& o) { o.job.num_workers = 3; });
  for (std::uint32_t const id : {0, 1, 2}) {
    edl::wire::JoinRequest r;
    r.set_role(edl::wire::JoinRequest::WORKER);
    r.set_id(id);
    r.set_incarnation(1);
    REQUIRE(edl::wire::unpack<edl::wire::JoinReply>(m.ask(method::join, r), "master").accepted());
  }
  auto const there = [&](std::uint32_t id) {
    return m.on_node([&] { return m.it->decisions().workers().known(id, 1); });
  };
  auto old = std::make_unique<watching>(m, 0);
  watching const fresh(m, 0);
  old.reset();
  // Who ends afterwards, one after the other, is lost.
  for (std::uint32_t const id : {1, 2}) {
    std::make_unique<watching>(m, id).reset();
    CHECK(eventually([&] { return !there(id); }));
  }
  CHECK(there(0));
}

}  // namespace handlers_test
