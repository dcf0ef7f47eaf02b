// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/listener.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace listener_test {

using namespace peers;

TEST_CASE("one listener takes TCP and Unix connections") {
  auto const name = any_name();
  server s({}, {any_port(), name});
  CHECK(s.listener.addresses()[0].port != 0);
  CHECK(s.listener.addresses()[1] == name);
  client over_tcp(s.listener.addresses()[0]), over_unix(name);
  CHECK(over_tcp.echo("a") == "a");
  CHECK(over_unix.echo("b") == "b");
  CHECK(s.listener.accepted() == 2);
  CHECK(s.listener.connections() == 2);
  over_tcp.channel.close();
  while (s.listener.connections() != 1) std::this_thread::yield();
  CHECK(s.listener.rejected() == 0);
}

TEST_CASE("an address in use is an error that names it") {
  server s({}, {any_port(), any_name()});
  for (auto const& taken : s.listener.addresses()) {
    std::string what;
    try {
      server other({}, {taken});
    } catch (edl::error const& e) {
      what = e.what();
    }
    CHECK(what.find("cannot listen on " + to_string(taken)) != std::string::npos);
    CHECK(what.find("in use") != std::string::npos);
  }
  CHECK_THROWS_AS(server({}, {edl::net::parse_address("tcp:192.0.2.1:0")}), edl::error);
  CHECK_THROWS_AS(edl::net::listener(s.node, {}, {}), edl::error);
}

TEST_CASE("who does not know the token is refused, on both sides") {
  server s;
  raw liar(s.where());
  liar.greet_as_client(edl::net::token("another token entirely"));
  auto const refusal = liar.read_frame();
  CHECK(refusal.head.kind == edl::wire::frame_kind::failure);
  CHECK(liar.closed_by_peer());
  raw stranger(s.where());
  stranger.greet_as_client(secret(), "test");
  stranger.send_frame({.kind = edl::wire::frame_kind::request, .method = echo, .call = 4}, "hello");
  CHECK(stranger.read_frame().message == "hello");

  auto wrong = options();
  wrong.secret = edl::net::token("another token entirely");
  edl::net::node n(wrong);
  edl::net::channel c(n, {s.where()}, "peer");
  // Whoever says so has proved nothing: it may be somebody else on that port, and is worth another try.
  auto const o = outcome_of([&] { edl::net::wait(c, {.method = echo, .timeout = 60s}); });
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find(to_string(s.where())) != std::string::npos);
  CHECK(o.text.find("token") != std::string::npos);

  auto other = options();
  other.job = "another";
  edl::net::node m(other);
  edl::net::channel d(m, {s.where()}, "peer");
  auto const p = outcome_of([&] { edl::net::wait(d, {.method = echo}); });
  CHECK(p.code == status::unavailable);
  CHECK(p.text.find("'test'") != std::string::npos);
  while (s.listener.rejected() < 3) std::this_thread::yield();
}

TEST_CASE("a proof heard on one connection is worth nothing on another") {
  server s;
  // Sends what a good client sent, on a new connection: the server's nonce differs.
  edl::net::nonce const mine{};
  edl::wire::Hello hello;
  hello.set_job("test");
  hello.set_nonce(mine.data(), mine.size());
  edl::wire::Proof heard;
  for (int round = 0; round < 2; ++round) {
    raw peer(s.where());
    peer.send_frame({.kind = edl::wire::frame_kind::hello}, hello.SerializeAsString());
    edl::wire::Challenge challenge;
    challenge.ParseFromString(peer.read_frame().message);
    if (round == 0) {
      auto const p = secret().prove(
          edl::net::token::side::client,
          {.job = "test", .client_nonce = mine, .server_nonce = std::as_bytes(std::span(challenge.nonce()))});
      heard.set_proof(p.data(), p.size());
    }
    peer.send_frame({.kind = edl::wire::frame_kind::proof}, heard.SerializeAsString());
    if (round == 0) {
      peer.send_frame({.kind = edl::wire::frame_kind::request, .method = echo, .call = 1}, "in");
      CHECK(peer.read_frame().message == "in");
    } else {
      CHECK(peer.read_frame().head.kind == edl::wire::frame_kind::failure);
      CHECK(peer.closed_by_peer());
    }
  }
}

TEST_CASE("a handshake has a deadline and a size") {
  server s({.handshake = 50ms});
  raw silent(s.where()), slow(s.where());
  slow.send("EDL1");
  CHECK(silent.closed_by_peer());
  CHECK(slow.closed_by_peer());
  raw large(s.where());
  large.send_frame({.kind = edl::wire::frame_kind::hello}, std::string(1025, 'h'));
  CHECK(large.closed_by_peer());
  raw request(s.where());
  request.send_frame({.kind = edl::wire::frame_kind::request, .method = echo, .call = 1}, "let me in");
  CHECK(request.closed_by_peer());
  while (s.listener.rejected() < 4) std::this_thread::yield();
  {
    raw probe(s.where());
  }  // connects and leaves: the health check of a load balancer
  client c(s.where());
  CHECK(c.echo("fine") == "fine");
  CHECK(s.listener.rejected() == 4);
}

TEST_CASE("strangers are limited: the one that waited longest goes") {
  server s({.strangers = 2, .handshake = 1h});
  raw first(s.where()), second(s.where()), third(s.where());
  CHECK(first.closed_by_peer());
  client c(s.where());
  CHECK(c.echo("fine") == "fine");
  CHECK(second.closed_by_peer());
  third.greet_as_client();
  third.send_frame({.kind = edl::wire::frame_kind::request, .method = echo, .call = 1}, "in time");
  CHECK(third.read_frame().message == "in time");
}

TEST_CASE("a thousand connections of garbage while a good client works") {
  server s;
  client c(s.where());
  CHECK(c.echo("before") == "before");
  std::atomic<bool> over = false;
  std::atomic<int> done = 0;
  std::thread good([&] {
    while (!over) {
      auto const sent = pattern(10'000, unsigned(done));
      std::vector<std::byte> got(sent.size());
      c.call({.method = echo, .payload = {sent}, .into = {got}});
      if (got != sent) return;
      ++done;
    }
  });
  edl::random_stream const random{23};
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    raw peer(s.where());
    std::string garbage(1 + random.below(200, 2 * i), '\0');
    for (std::size_t j = 0; j < garbage.size(); ++j)
      garbage[j] = char(random.bits(1'000'000 + 1'000 * i + j));
    if (i % 3 == 0) garbage = "GET / HTTP/1.1\r\nHost: here\r\n\r\n" + garbage;
    if (i % 3 == 1) garbage = "EDL1\2\5" + garbage;
    peer.try_send(garbage);
    if (i % 7 != 0) continue;
    asio::error_code ignored;
    peer.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    peer.closed_by_peer();
  }
  while (s.listener.rejected() < 500) std::this_thread::yield();
  over = true;
  good.join();
  CHECK(done > 0);
  CHECK(c.echo("after") == "after");
  CHECK(s.listener.accepted() == 1);
  CHECK(s.listener.connections() == 1);
}

TEST_CASE("refused connections are one clear line, and not one each") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  {
    auto o = options();
    o.log = edl::logger(edl::severity::warning, "", ends[1]);
    edl::net::node n(o);
    edl::net::listener l(n, {any_port()}, {});
    for (int i = 0; i < 20; ++i) {
      raw peer(l.addresses()[0]);
      peer.send(std::string(40, 'x'));
      peer.closed_by_peer();
    }
    while (l.rejected() < 20) std::this_thread::yield();
  }
  std::string text(65'536, '\0');
  auto const n = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::close(ends[1]);
  REQUIRE(n > 0);
  text.resize(std::size_t(n));
  CHECK(text.find("tcp:127.0.0.1:") != std::string::npos);
  CHECK(text.find("connection refused: it speaks neither TLS nor this protocol") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 10);
}

TEST_CASE("a listener that goes waits for its handlers") {
  edl::net::node n(options());
  std::atomic<bool> ended = false, started = false;
  edl::net::event never(n.executor());
  auto l = std::make_unique<edl::net::listener>(n, std::vector{any_port()},
                                                [&](edl::net::request&) -> asio::awaitable<void> {
                                                  struct at_end {
                                                    std::atomic<bool>& flag;
                                                    ~at_end() { flag = true; }
                                                  } const flag{ended};
                                                  started = true;
                                                  co_await never.wait();
                                                });
  client c(l->addresses()[0]);
  auto const call = edl::net::start(c.channel, {.method = 1});
  while (!started) std::this_thread::yield();
  l.reset();
  CHECK(ended);
}

}  // namespace listener_test
