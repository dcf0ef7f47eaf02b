// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/tls.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "edl/base/net/security/token.hpp"
#include "fuzz.hpp"

namespace tls_fuzz {

namespace {

namespace net = edl::net;
using session = net::tls_session;

struct pair {
  pair() {
    fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
                  "the system has sockets");
  }
  ~pair() { ::close(ends[0]), ::close(ends[1]); }
  int ends[2];
};

/// Goes on until the session wants more than the peer has said.
void hear(session& s, bool established) {
  std::array<std::byte, 4096> into;
  if (!established && s.handshake() != session::step::done) return;
  fuzz::require(established, "who does not know the key ends no handshake");
  for (;;) {
    asio::error_code failed;
    std::size_t const n = s.read(into, failed);
    fuzz::require(n <= into.size(), "a read keeps to its memory");
    fuzz::require(n == 0, "bytes that the peer has not encrypted are never read");
    if (n == 0) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size > 32 << 10) return 0;
  static net::tls_context const tls(net::token("0123456789abcdef"), "fuzz");
  for (auto const side : {session::side::server, session::side::client}) {
    pair p;
    session s(tls, p.ends[0], side);
    ::send(p.ends[1], data, size, MSG_NOSIGNAL);
    ::shutdown(p.ends[1], SHUT_WR);
    fuzz::takes([&] { hear(s, false); });
    s.detach();
  }
  // The same in the place of records, once both sides have proved that they know the key.
  pair p;
  session server(tls, p.ends[0], session::side::server), client(tls, p.ends[1], session::side::client);
  bool done = false;
  for (int turn = 0; turn < 8 && !done; ++turn) {
    bool const a = client.handshake() == session::step::done, b = server.handshake() == session::step::done;
    done = a && b;
  }
  fuzz::require(done, "two who know the key end their handshake");
  ::send(p.ends[1], data, size, MSG_NOSIGNAL);
  ::shutdown(p.ends[1], SHUT_WR);
  fuzz::takes([&] { hear(server, true); });
  server.detach();
  client.detach();
  return 0;
}

}  // namespace tls_fuzz
