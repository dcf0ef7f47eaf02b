// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/handshake.hpp"

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/system_error.hpp>
#include <functional>

#include "edl/base/wire/edl.pb.h"
#include "fuzz.hpp"
#include "sockets.hpp"

namespace handshake_fuzz {

namespace {

namespace net = edl::net;
namespace wire = edl::wire;

net::node_options options(std::string name) {
  return {.job = "fuzz",
          .secret = net::token("0123456789abcdef"),
          .log = edl::logger(edl::severity::critical),
          .self = {std::move(name), 1}};
}

std::string const frames;  // no stream of raw bytes
net::address const place{net::address::transport::local, "fuzz", 0, "ps-0"};

/// Whether a side has taken its peer.
asio::awaitable<void> greet(std::function<asio::awaitable<void>()> side, bool& taken) {
  try {
    co_await side();
    taken = true;
  } catch (edl::error const& refused) {
    fuzz::takes([&] { throw edl::error(refused.what()); });
  } catch (asio::system_error const&) {  // the peer is gone
  }
}

void put(int to, wire::frame_kind kind, std::string const& message) {
  auto const head = wire::encode({.kind = kind, .message_size = std::uint32_t(message.size())});
  ::send(to, head.data(), head.size(), MSG_NOSIGNAL);
  ::send(to, message.data(), message.size(), MSG_NOSIGNAL);
}

std::string get(int from) {
  std::array<std::byte, wire::frame_header_size> head;
  if (::recv(from, head.data(), head.size(), MSG_WAITALL | MSG_DONTWAIT) != ssize_t(head.size())) return {};
  wire::frame_header const h = wire::decode(head);
  std::string message(h.message_size, '\0');
  if (::recv(from, message.data(), message.size(), MSG_DONTWAIT) != ssize_t(message.size())) return {};
  return h.kind == wire::frame_kind::challenge ? message : "";
}

/// A client that knows the secret, and says this Hello.
void honest(std::string const& said, net::node_options const& server, net::tls_context const& tls) {
  wire::Hello hello;
  if (!hello.ParseFromString(said)) return;
  asio::io_context io;
  int ends[2];
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "the system has sockets");
  net::secure_socket::plain_socket plain(io);
  plain.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
  net::secure_socket near(std::move(plain));
  put(ends[1], wire::frame_kind::hello, said);
  net::greeting heard;
  bool taken = false;
  std::vector<net::address> const published{place};
  asio::co_spawn(io, greet([&] { return net::greet_client(near, server, tls, published, heard); }, taken),
                 asio::detached);
  while (io.poll_one() > 0) {
  }
  if (wire::Challenge challenge; challenge.ParseFromString(get(ends[1])) && !challenge.proof().empty()) {
    auto const bytes = [](std::string const& s) { return std::as_bytes(std::span(s)); };
    auto const proof =
        server.secret.prove(net::token::side::client, {.job = server.job,
                                                       .client_nonce = bytes(hello.nonce()),
                                                       .server_nonce = bytes(challenge.nonce()),
                                                       .client = hello.self(),
                                                       .server = challenge.self(),
                                                       .wanted = hello.wanted(),
                                                       .place = hello.place(),
                                                       .stream = hello.stream(),
                                                       .channel = {}});
    wire::Proof message;
    message.set_proof(proof.data(), proof.size());
    put(ends[1], wire::frame_kind::proof, message.SerializeAsString());
  }
  ::shutdown(ends[1], SHUT_WR);
  io.run();
  if (taken)
    fuzz::require(hello.job() == "fuzz" && heard.client == hello.self() && heard.stream == hello.stream() &&
                      net::answers_to("ps-0/0000000000000001", hello.wanted()),
                  "who is taken has dialled this process, for this job");
  ::close(ends[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size > fuzz::longest_talk) return 0;
  static net::node_options const server = options("ps-0"), client = options("worker-0");
  static net::tls_context const tls(server.secret, server.job);
  {
    asio::io_context io;
    fuzz::talk talk(io, {data, size});
    net::greeting heard;
    bool taken = false;
    std::vector<net::address> const published{place};
    asio::co_spawn(io,
                   greet([&] { return net::greet_client(talk.near, server, tls, published, heard); }, taken),
                   asio::detached);
    io.run();
    fuzz::require(!taken && heard.client.empty(), "who proves nothing is nobody");
  }
  {
    asio::io_context io;
    fuzz::talk talk(io, {data, size});
    bool taken = false;
    asio::co_spawn(io, greet([&] { return net::greet_server(talk.near, client, tls, place, frames); }, taken),
                   asio::detached);
    io.run();
    fuzz::require(!taken, "a server that proves nothing is refused");
  }
  if (size <= 1024) honest(std::string(fuzz::text(data, size)), server, tls);
  return 0;
}

}  // namespace handshake_fuzz
