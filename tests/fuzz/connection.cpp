// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/connection.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "fuzz.hpp"
#include "sockets.hpp"

namespace connection_fuzz {

namespace {

namespace net = edl::net;

asio::awaitable<void> serve(net::request& r) {
  if (r.method() % 2 == 1 && r.payload_size() <= 4096) {
    std::vector<std::byte> payload(r.payload_size());
    co_await r.read(payload);
  }
  if (r.method() % 3 == 1) throw edl::error("refused");
  co_await r.reply(std::string_view("done"));
}

/// One of the calls that the peer may answer.
asio::awaitable<void> call(net::connection& to, std::size_t room) try {
  std::vector<std::byte> into(room);
  net::outgoing what{.method = 1, .message = "call"};
  if (room > 0) what.into = {into};
  co_await to.call(what, std::chrono::steady_clock::now() + std::chrono::seconds(60));
} catch (edl::error const&) {
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size > fuzz::longest_talk) return 0;
  static edl::logger const silent(edl::severity::critical);
  asio::io_context io;
  fuzz::talk talk(io, {data, size});
  net::limits bounds;
  bounds.frame = {.message = 4096, .payload = 64 << 10};
  bounds.handlers = 4;
  bool closed = false;
  auto const c = net::connection::open(std::move(talk.near), "the fuzzer", bounds, silent, serve,
                                       [&] { closed = true; });
  asio::co_spawn(io, call(*c, 0), asio::detached);
  asio::co_spawn(io, call(*c, 8), asio::detached);
  io.run();
  fuzz::require(closed && c->closed(), "a connection ends when its peer has");
  return 0;
}

}  // namespace connection_fuzz
