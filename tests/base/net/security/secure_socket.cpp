// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/secure_socket.hpp"

#include <doctest/doctest.h>

#include <future>
#include <mutex>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"

namespace secure_socket_test {

using namespace peers;

namespace {

/// Passes bytes between a caller and another address, and may change one on the way.
struct relay {
  explicit relay(address to, std::size_t flip_after = ~std::size_t{0})
      : thread([this, to = std::move(to), flip_after] { run(to, flip_after); }) {}
  ~relay() {
    over = true;
    thread.join();
  }
  void run(address const& to, std::size_t flip_after) {
    try {
      raw in(port.acceptor), out(to);
      in.socket().non_blocking(true);
      out.socket().non_blocking(true);
      std::size_t seen = 0;
      std::vector<char> some(1 << 16);
      auto const pass = [&](raw& from, raw& into, bool count) {
        asio::error_code failed;
        std::size_t const n = from.socket().read_some(asio::buffer(some), failed);
        if (failed && failed != asio::error::would_block) return false;
        if (count && n > 0 && seen <= flip_after && flip_after < seen + n) some[flip_after - seen] ^= 1;
        if (count) seen += n;
        into.socket().non_blocking(false);
        asio::write(into.socket(), asio::buffer(some.data(), n), failed);
        into.socket().non_blocking(true);
        if (n == 0) std::this_thread::yield();
        return !failed;
      };
      while (!over && pass(in, out, true) && pass(out, in, false)) {
      }
    } catch (std::exception const&) {
    }
  }
  address where(std::string const& peer = {}) {
    address a = port.where();
    a.peer = peer;
    return a;
  }

  raw_port port;
  std::atomic<bool> over = false;
  std::thread thread;
};

edl::net::listener_options no_streams() { return {}; }

}  // namespace

TEST_CASE("calls over TLS carry messages and payloads both ways, many at once") {
  server s(secured({"ps-1", 7}));
  CHECK(s.where().peer == "ps-1/0000000000000007");
  client c(secured({"worker-0", 9}), {s.where()});
  CHECK(c.echo("hello") == "hello");
  for (std::size_t size : {1u, 4'000u, 16'384u, 100'000u, 5'000'001u}) {
    auto const sent = pattern(size, unsigned(size));
    std::vector<std::byte> got(size);
    c.call({.method = echo, .message = std::string(size % 97, 'm'), .payload = {sent}, .into = {got}});
    CHECK(got == sent);
  }
  std::vector<edl::net::started_call> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(edl::net::start(c.channel, {.method = echo, .message = std::to_string(i)}));
  for (int i = 0; i < 200; ++i) CHECK(all[std::size_t(i)].get().message == std::to_string(i));
  std::vector<std::byte> big_reply(9'000'000);
  c.call({.method = big, .message = "9000000", .into = {big_reply}});
  CHECK(big_reply == pattern(9'000'000, 1));
  CHECK(s.listener.rejected() == 0);
}

TEST_CASE("TLS and no TLS do not mix, unless the side that serves asks for none") {
  server tls(secured()), plain;
  client without(options(), {tls.where()}), with(secured(), {plain.where()});
  auto const o = outcome_of([&] { edl::net::wait(without.channel, {.method = echo, .timeout = 60s}); });
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find("--transport_security") != std::string::npos);
  CHECK(with.echo("encrypted all the same") == "encrypted all the same");
}

TEST_CASE("another version of the protocol is refused with both numbers") {
  server s(secured());
  raw old(s.where());
  auto head = edl::wire::encode({.kind = edl::wire::frame_kind::hello});
  head[4] = std::byte{1};
  old.send({reinterpret_cast<char const*>(head.data()), head.size()});
  auto const refusal = old.read_frame();
  CHECK(refusal.head.kind == edl::wire::frame_kind::failure);
  CHECK(refusal.message.find("version 1") != std::string::npos);
  CHECK(refusal.message.find("speaks 2") != std::string::npos);
  CHECK(old.closed_by_peer());
}

TEST_CASE("a relay between two processes reads nothing, and what it changes is never believed") {
  server s(secured());
  {
    relay honest(s.where());
    client c(secured(), {honest.where()});
    CHECK(c.echo("through") == "through");
  }
  // In the middle of a payload, long after the handshake.
  relay liar(s.where(), 200'000);
  client c(secured(), {liar.where()});
  auto const sent = pattern(1'000'000, 3);
  std::vector<std::byte> got(sent.size());
  auto const o = outcome_of([&] { c.call({.method = echo, .payload = {sent}, .into = {got}}); });
  CHECK(o.code == status::unavailable);
}

TEST_CASE("a peer is only what it was dialled as") {
  for (bool const encrypted : {true, false}) {
    auto const with = [&](edl::net::identity self) {
      auto o = secured(std::move(self));
      if (!encrypted) o.security = edl::net::transport_security::none;
      return o;
    };
    server one(with({"ps-1", 5})), two(with({"ps-2", 6}));
    auto const fails = [&](address const& where) {
      client c(with({"worker-0", 1}), {where});
      return outcome_of([&] { c.call({.method = echo, .timeout = 20s}); });
    };
    auto const works = [&](address const& where) { return client(with({}), {where}).echo("x") == "x"; };
    auto const at = [](address where, std::string peer) {
      where.peer = std::move(peer);
      return where;
    };
    CHECK(works(one.where()));
    CHECK(works(at(one.where(), "ps-1")));
    CHECK(works(at(one.where(), "")));
    auto o = fails(at(two.where(), "ps-1/0000000000000005"));  // a pod's address that is another's by now
    CHECK(o.code == status::unavailable);
    CHECK(o.text.find("this is ps-2/0000000000000006, but ps-1/0000000000000005 was dialled") !=
          std::string::npos);
    o = fails(at(one.where(), "ps-1/0000000000000004"));  // an earlier run of the same
    CHECK(o.code == status::unavailable);
    // Somebody at a dead process' port passes all on to its successor.
    relay squatter(one.where());
    o = fails(squatter.where("ps-1"));
    CHECK(o.code == status::unavailable);
    CHECK(o.text.find("does not listen at") != std::string::npos);
  }
}

TEST_CASE("a peer that lies about who it is cannot prove it") {
  raw_port port;
  std::thread peer([&] {
    raw r(port.acceptor);
    try {
      r.greet_as_server(secret(), "ps-2");
    } catch (asio::system_error const&) {
    }
  });
  address where = port.where();
  where.peer = "ps-1";
  client c(options(), {where});
  auto const o = outcome_of([&] { c.call({.method = echo, .timeout = 5s}); });
  peer.join();
  CHECK(o.code == status::unavailable);
  CHECK(o.text.find("ps-2 replied, but ps-1 was dialled") != std::string::npos);
}

TEST_CASE("what a stranger says is no verdict: the call goes on to the process that proves itself") {
  for (status const said :
       {status::unauthenticated, status::invalid, status::stale_generation, status::internal}) {
    raw_port port;
    address const where = port.where();
    auto const refuse = [said](raw& r) {
      r.read_frame();
      edl::wire::Failure failure;
      failure.set_code(std::uint32_t(said));
      failure.set_text("job \x1b[2Jover");
      r.send_frame({.kind = edl::wire::frame_kind::failure}, failure.SerializeAsString());
    };
    std::atomic<bool> refused = false;
    std::thread stranger([&] {
      {
        raw r(port.acceptor);
        refuse(r);
        r.closed_by_peer();
      }
      port.acceptor.close();
      refused = true;
    });
    client c(where);
    auto call =
        edl::net::start(c.channel, {.method = echo, .message = "again", .timeout = 20s, .idempotent = true});
    stranger.join();
    server real({}, {where});
    CHECK(call.get().message == "again");
  }
}

TEST_CASE("streams over TLS carry raw bytes") {
  std::mutex lock;
  std::vector<edl::net::byte_stream> taken;
  edl::net::node here(secured({"worker-0", 3})), there(secured({"worker-1", 4}));
  auto o = no_streams();
  o.streams = [&](edl::net::byte_stream s, std::string const&, std::string const& peer) {
    std::lock_guard const guard(lock);
    CHECK(peer.find("worker-0/") != std::string::npos);
    taken.push_back(std::move(s));
  };
  edl::net::listener l(there, {any_port()}, {}, o);
  std::promise<edl::net::byte_stream> opened;
  here.spawn([&]() -> asio::awaitable<void> {
    opened.set_value(co_await edl::net::open_stream(here, l.addresses(), "worker-1", "group/1/0", 10s));
  });
  auto s = opened.get_future().get();
  auto const data = pattern(2'000'000, 9);
  std::vector<std::byte> got(data.size());
  std::size_t sent = 0, received = 0;
  while (received < got.size()) {
    if (sent < data.size() || s.unsent()) sent += s.send(std::span(data).subspan(sent));
    std::lock_guard const guard(lock);
    if (!taken.empty()) received += taken[0].receive(std::span(got).subspan(received));
  }
  CHECK(got == data);
  taken.clear();
  CHECK_THROWS_AS(
      [&] {
        for (;;) s.receive(got);
      }(),
      edl::error);
}

}  // namespace secure_socket_test
