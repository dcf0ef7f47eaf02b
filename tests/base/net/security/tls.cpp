// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/tls.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/error.hpp>
#include <string>
#include <vector>

#include "base/net/peers.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/core/error.hpp"

namespace tls_test {

using edl::net::tls_context;
using edl::net::tls_session;
using step = tls_session::step;
using side = tls_session::side;

namespace {

/// Two sockets joined through this test, which sees and may change what travels.
struct wire {
  int client[2], server[2];  // the session's end, and this test's
  wire() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, client) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, server) == 0);
  }
  ~wire() {
    for (int fd : {client[0], client[1], server[0], server[1]}) ::close(fd);
  }
  static std::string move(int from, int to, std::size_t flip = ~std::size_t{0}) {
    std::string all;
    char some[65536];
    for (ssize_t n; (n = ::recv(from, some, sizeof some, 0)) > 0;) all.append(some, std::size_t(n));
    if (flip < all.size()) all[flip] = char(all[flip] ^ 1);
    if (!all.empty()) REQUIRE(::send(to, all.data(), all.size(), 0) == ssize_t(all.size()));
    return all;
  }
  std::string forward(std::size_t flip = ~std::size_t{0}) { return move(client[1], server[1], flip); }
  std::string back() { return move(server[1], client[1]); }
};

void shake(wire& w, tls_session& client, tls_session& server) {
  for (int i = 0; i < 10; ++i) {
    auto const a = client.handshake();
    w.forward();
    auto const b = server.handshake();
    w.back();
    if (a == step::done && b == step::done) return;
  }
  FAIL("no handshake");
}

std::size_t put(tls_session& to, edl::bytes data, asio::error_code& failed) {
  asio::const_buffer const one(data.data(), data.size());
  return to.write({&one, 1}, failed);
}

edl::bytes text(std::string_view s) { return std::as_bytes(std::span(s)); }

}  // namespace

TEST_CASE("two sides with one key agree on a binding and pass bytes; nobody between reads them") {
  tls_context const a(peers::secret(), "job"), b(peers::secret(), "job");
  wire w;
  tls_session client(a, w.client[0], side::client), server(b, w.server[0], side::server);
  shake(w, client, server);
  CHECK(client.channel_binding() == server.channel_binding());
  asio::error_code failed;
  std::string const secret = "nothing that a neighbour should see";
  CHECK(put(client, text(secret), failed) == secret.size());
  std::string const seen = w.forward();
  CHECK(seen.size() > secret.size());
  CHECK(seen.find("neighbour") == std::string::npos);
  std::vector<std::byte> got(100);
  CHECK(server.read(got, failed) == secret.size());
  CHECK(std::string(reinterpret_cast<char const*>(got.data()), secret.size()) == secret);
  CHECK(server.read(got, failed) == 0);
  CHECK(failed == asio::error::would_block);

  wire other;
  tls_session c(a, other.client[0], side::client), s(b, other.server[0], side::server);
  shake(other, c, s);
  CHECK(c.channel_binding() != client.channel_binding());
}

TEST_CASE("a peer that closes amid the handshake is not said to have another token") {
  tls_context const a(peers::secret(), "job");
  wire w;
  tls_session client(a, w.client[0], side::client), server(a, w.server[0], side::server);
  client.handshake();
  w.forward();
  server.handshake();
  ::shutdown(w.server[1], SHUT_WR);  // as who has waited for a process that stood still
  std::string const said = complaint([&] { server.handshake(); });
  CHECK(contains(said, "the peer closed the connection before the handshake was over"));
  CHECK_FALSE(contains(said, "EDL_JOB_TOKEN"));
}

TEST_CASE("another token or another job has another key") {
  tls_context const ours(peers::secret(), "job");
  for (bool const other_job : {false, true}) {
    tls_context const theirs(other_job ? peers::secret() : edl::net::token("another token entirely"),
                             other_job ? "another" : "job");
    wire w;
    tls_session client(theirs, w.client[0], side::client), server(ours, w.server[0], side::server);
    CHECK(client.handshake() == step::wants_read);
    w.forward();
    CHECK_THROWS_AS(server.handshake(), edl::error);
    w.back();
    CHECK_THROWS_AS(client.handshake(), edl::error);
  }
}

TEST_CASE("a bit that is changed on the way is an error, never other data") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client), server(context, w.server[0], side::server);
  shake(w, client, server);
  asio::error_code failed;
  put(client, text("gradients"), failed);
  w.forward(10);
  std::vector<std::byte> got(100);
  CHECK_THROWS_AS(server.read(got, failed), edl::error);
}

TEST_CASE("many small pieces, and more than a socket holds, arrive in order; what waits is told") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client), server(context, w.server[0], side::server);
  shake(w, client, server);
  auto const data = peers::pattern(3'000'000, 5);
  std::vector<asio::const_buffer> parts;
  std::size_t at = 0;
  for (std::size_t size : {32u, 100u, 0u, 7u, 9'000u, 20'000u, 16'384u, 1u})
    parts.emplace_back(data.data() + at, size), at += size;
  parts.emplace_back(data.data() + at, data.size() - at);
  std::vector<std::byte> got;
  std::vector<std::byte> room(40'000);
  bool was_unsent = false, was_full = false;
  std::size_t sent = 0;
  while (got.size() < data.size()) {
    std::vector<asio::const_buffer> left;
    std::size_t skip = sent;
    for (auto const& p : parts) {
      std::size_t const n = std::min(skip, p.size());
      skip -= n;
      left.push_back(p + n);
    }
    asio::error_code failed;
    std::size_t const n = client.write(left, failed);
    sent += n;
    was_unsent = was_unsent || client.unsent();
    was_full = was_full || failed == asio::error::would_block;
    if (sent == data.size() && !client.unsent()) CHECK_FALSE(failed);
    // The other side takes it only when the first cannot go on.
    if (!failed && sent < data.size()) continue;
    char some[65536];
    ssize_t moved;
    while ((moved = ::recv(w.client[1], some, sizeof some, 0)) > 0) {
      REQUIRE(::send(w.server[1], some, std::size_t(moved), 0) == moved);
      for (std::size_t r; (r = server.read(room, failed)) > 0;)
        got.insert(got.end(), room.begin(), room.begin() + std::ptrdiff_t(r));
      CHECK(failed == asio::error::would_block);
    }
  }
  CHECK(was_unsent);
  CHECK(was_full);
  CHECK(got == data);
}

TEST_CASE("decrypted bytes that were not taken are known to be there") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client), server(context, w.server[0], side::server);
  shake(w, client, server);
  asio::error_code failed;
  put(client, text("abcdef"), failed);
  w.forward();
  std::vector<std::byte> two(2);
  CHECK_FALSE(server.buffered());
  CHECK(server.read(two, failed) == 2);
  CHECK(server.buffered());
  CHECK(server.read(two, failed) == 2);
  CHECK(server.read(two, failed) == 2);
  CHECK_FALSE(server.buffered());
}

TEST_CASE("the end of the peer is the end; a closed socket's number is touched no more") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client), server(context, w.server[0], side::server);
  shake(w, client, server);
  asio::error_code failed;
  ::shutdown(w.server[1], SHUT_WR);
  std::vector<std::byte> some(10);
  CHECK(server.read(some, failed) == 0);
  CHECK(failed == asio::error::eof);
  client.detach();
  put(client, text("late"), failed);
  CHECK(failed);
  CHECK(w.forward().empty());
}

TEST_CASE("a part of a record is nothing to read yet") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client), server(context, w.server[0], side::server);
  shake(w, client, server);
  auto const data = peers::pattern(1'000, 3);
  asio::error_code failed;
  REQUIRE(put(client, data, failed) == data.size());
  char record[4'096];
  ssize_t const size = ::recv(w.client[1], record, sizeof record, 0);
  REQUIRE(size > 1'000);
  REQUIRE(::send(w.server[1], record, 500, 0) == 500);
  std::vector<std::byte> got(2'000);
  CHECK(server.read(got, failed) == 0);
  CHECK(failed == asio::error::would_block);
  CHECK_FALSE(server.buffered());
  REQUIRE(::send(w.server[1], record + 500, std::size_t(size) - 500, 0) == size - 500);
  CHECK(server.read(std::span(got).first(400), failed) == 400);
  CHECK(server.buffered());
  CHECK(server.read(std::span(got).subspan(400), failed) == 600);
  CHECK_FALSE(server.buffered());
  CHECK(std::equal(data.begin(), data.end(), got.begin()));
}

TEST_CASE("a record whose length somebody has changed is given up when it does not end") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session client(context, w.client[0], side::client);
  tls_session server(context, w.server[0], side::server, std::chrono::milliseconds(0));
  shake(w, client, server);
  asio::error_code failed;
  REQUIRE(put(client, peers::pattern(100, 3), failed) == 100);
  char record[4'096];
  ssize_t const size = ::recv(w.client[1], record, sizeof record, 0);
  REQUIRE(size > 100);
  record[3] = 0x20;  // 8 KiB more
  REQUIRE(::send(w.server[1], record, std::size_t(size), 0) == size);
  std::vector<std::byte> got(2'000);
  std::string const why = complaint([&] {
    for (;;) CHECK(server.read(got, failed) == 0);
  });
  CHECK(contains(why, "TLS: a record does not end within 0 ms"));
}

TEST_CASE("a handshake that does not end is cut off after 16 KiB") {
  tls_context const context(peers::secret(), "job");
  wire w;
  tls_session server(context, w.server[0], side::server);
  // A client hello of 16,000 bytes, each in a record of its own.
  std::string all("\x16\x03\x01\x00\x04\x01\x00\x3e\x80", 9);
  for (int i = 0; i < 15'000; ++i) all += std::string("\x16\x03\x01\x00\x01\x03", 6);
  std::string said;
  std::size_t sent = 0;
  while (said.empty() && sent < all.size()) {
    ssize_t const n =
        ::send(w.server[1], all.data() + sent, std::min<std::size_t>(4'096, all.size() - sent), 0);
    if (n > 0) sent += std::size_t(n);
    try {
      server.handshake();
    } catch (edl::error const& e) {
      said = e.what();
    }
  }
  CHECK(said.find("more than 16384 bytes") != std::string::npos);
  CHECK(sent < 40'000);
}

}  // namespace tls_test
