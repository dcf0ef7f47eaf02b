// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/channel.hpp"

#include <doctest/doctest.h>

#include <asio/co_spawn.hpp>
#include <asio/use_future.hpp>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"

namespace channel_test {

using namespace peers;
using edl::net::outgoing;
using edl::net::start;

TEST_CASE("a channel connects when it is needed") {
  server s;
  client c(s.where());
  CHECK_FALSE(c.channel.connected());
  CHECK(s.listener.accepted() == 0);
  CHECK(c.echo("now") == "now");
  CHECK(c.channel.connected());
}

TEST_CASE("Unix sockets come first, and TCP serves where they do not lead") {
  auto const name = any_name();
  server s({}, {any_port(), name});
  auto const peer_of = [&](std::vector<address> const& to) {
    client c(to);
    auto const o = outcome_of([&] { c.call({.method = refuse}); });
    return o.text;
  };
  CHECK(peer_of({s.where(), name}).find("(unix:@") != std::string::npos);
  CHECK(peer_of({any_name(), s.where()}).find("(tcp:") != std::string::npos);
  // The name is taken by a process of another job.
  auto other = options();
  other.job = "another";
  other.secret = edl::net::token("another token entirely");
  edl::net::node n(other);
  edl::net::listener l(n, {any_name()}, {});
  CHECK(peer_of({l.addresses()[0], s.where()}).find("(tcp:") != std::string::npos);
}

TEST_CASE("a peer that cannot be reached is unavailable at once, by name and reason") {
  address gone;
  {
    raw_port port;
    gone = port.where();
  }
  client c({gone, any_name()});
  auto const o = outcome_of([&] { c.call({.method = echo, .timeout = 1h}); });
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find("peer cannot be reached: unix:@") == 0);
  CHECK(o.text.find(to_string(gone)) != std::string::npos);
  CHECK(o.text.find("refused") != std::string::npos);
  // Idempotent calls try until their deadline.
  auto const before = std::chrono::steady_clock::now();
  CHECK(outcome_of([&] { c.call({.method = echo, .timeout = 1s, .idempotent = true}); }).code ==
        status::unavailable);
  CHECK(std::chrono::steady_clock::now() - before > 20ms);
  client unknown(edl::net::parse_address("tcp:no-such-host.invalid:1"));
  CHECK(outcome_of([&] { unknown.call({.method = echo}); }).code == status::unavailable);
}

TEST_CASE("an idempotent call outlives its server") {
  for (auto where : {any_port(), any_name()}) {
    auto s = std::make_unique<server>(edl::net::limits{}, std::vector{where});
    where = s->where();
    client c(where);
    auto patient =
        start(c.channel, {.method = hold, .message = "patient", .timeout = 1h, .idempotent = true});
    auto plain = start(c.channel, {.method = hold, .timeout = 1h});
    s->wait_held(2);
    s.reset();
    CHECK(outcome_of([&] { plain.get(); }).code == status::unavailable);
    s = std::make_unique<server>(edl::net::limits{}, std::vector{where});
    s->wait_held(1);
    s->release();
    CHECK(patient.get().message == "patient");
    CHECK(c.echo("again") == "again");
  }
}

TEST_CASE("a call that is not idempotent is not repeated") {
  raw_port port;
  client c(port.where());
  auto call = start(c.channel, {.method = 1});
  {
    raw peer(port.acceptor);
    peer.greet_as_server();
    peer.read_frame();
  }
  CHECK(outcome_of([&] { call.get(); }).code == status::unavailable);
}

TEST_CASE("who is lost is tried for as long as the caller has patience") {
  auto s = std::make_unique<server>();
  client c(s->where());
  CHECK(c.echo("there") == "there");
  s.reset();
  auto const o =
      outcome_of([&] { c.call({.method = echo, .timeout = 1h, .idempotent = true, .patience = 30ms}); });
  CHECK(o.code == status::unavailable);
}

TEST_CASE("a connection that held for a while is a new beginning of the caller's patience") {
  raw_port port;
  client c(port.where());
  auto call = start(c.channel, {.method = 1, .timeout = 1h, .idempotent = true, .patience = 20ms});
  for (int again = 0; again < 3; ++again) {
    raw peer(port.acceptor);
    peer.greet_as_server();
    peer.read_frame();
    std::this_thread::sleep_for(40ms);
  }
  raw peer(port.acceptor);
  peer.greet_as_server();
  auto const last = peer.read_frame();
  peer.send_frame({.kind = edl::wire::frame_kind::response, .call = last.head.call}, "done");
  CHECK(call.get().message == "done");
}

TEST_CASE("an idempotent call is not repeated after an answer, whatever it says") {
  server s;
  client c(s.where());
  CHECK(outcome_of([&] { c.call({.method = refuse, .timeout = 1h, .idempotent = true}); }).code ==
        status::stale_generation);
}

TEST_CASE("a peer that accepts and says nothing is given up in time") {
  raw_port port;
  client c(port.where(), {.connect = 50ms});
  auto const o = outcome_of([&] { c.call({.method = 1}); });
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find("no reply within 50 ms") != std::string::npos);
  client d(port.where());
  CHECK(outcome_of([&] { d.call({.method = 1, .timeout = 50ms}); }).code == status::deadline_exceeded);
  CHECK(outcome_of([&] {
          auto call = start(d.channel, {.method = 1, .timeout = 1h});
          call.cancel();
          call.get();
        }).code == status::cancelled);
}

TEST_CASE("closing a channel fails its calls, also those that wait for a connection") {
  server s;
  raw_port silent;
  client c(s.where()), d(silent.where());
  auto call = start(c.channel, {.method = hold}), waiting = start(d.channel, {.method = 1});
  s.wait_held(1);
  c.channel.close();
  d.channel.close();
  CHECK(outcome_of([&] { call.get(); }).code == status::cancelled);
  CHECK(outcome_of([&] { waiting.get(); }).code == status::cancelled);
  CHECK(outcome_of([&] { c.echo("closed"); }).code == status::cancelled);
}

TEST_CASE("stopping the node fails calls with cancelled") {
  server s;
  client c(s.where());
  auto call = start(c.channel, {.method = hold});
  s.wait_held(1);
  c.node.stop();
  CHECK(outcome_of([&] { call.get(); }).code == status::cancelled);
  CHECK(outcome_of([&] { c.echo("stopped"); }).code == status::cancelled);
}

TEST_CASE("coroutines call too, from the node's thread") {
  server s;
  client c(s.where());
  auto sum = asio::co_spawn(
      c.node.executor(),
      [&]() -> asio::awaitable<std::size_t> {
        std::size_t n = 0;
        for (int i = 0; i < 20; ++i) {
          outgoing what{.method = echo, .message = std::string(std::size_t(i), 'x')};
          n += (co_await c.channel.call(what)).message.size();
        }
        co_return n;
      },
      asio::use_future);
  CHECK(sum.get() == 190);
}

TEST_CASE("a channel has an address") {
  edl::net::node n(options());
  CHECK_THROWS_AS(edl::net::channel(n, {}, "ps-0"), edl::error);
}

}  // namespace channel_test
