// SPDX-License-Identifier: Apache-2.0
// The floor: coroutines that read and write fixed sizes, and blocking streams between two arenas.
#include <array>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstring>

#include "contestant.hpp"
#include "edl/base/net/address.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/base/net/transport.hpp"

namespace bench {
namespace {

using edl::net::address;
using socket = asio::generic::stream_protocol::socket;
using small = std::array<char, small_bytes>;

// What a client wants from then on stands in the first bytes of each request.
struct order {
  bool push = false, pull = false;
  std::size_t size = 0;
};

void send_all(socket& s, std::vector<char> const& from, std::size_t size) {
  for (std::size_t at = 0; at < size;) at += s.write_some(asio::buffer(from.data() + at, size - at));
}

void receive_all(socket& s, std::vector<char>& into, std::size_t size) {
  for (std::size_t at = 0; at < size;) at += s.read_some(asio::buffer(into.data() + at, size - at));
}

asio::awaitable<void> answer_pings(socket& s, small first) {
  for (;;) {
    co_await asio::async_write(s, asio::buffer(first), asio::use_awaitable);
    co_await asio::async_read(s, asio::buffer(first), asio::use_awaitable);
  }
}

void serve_one(asio::io_context& io, socket& s, std::vector<char>& arena) {
  small text;
  asio::read(s, asio::buffer(text));
  order what;
  std::memcpy(&what, text.data(), sizeof what);
  if (!what.push && !what.pull) {
    asio::co_spawn(io, answer_pings(s, text), [](std::exception_ptr) {});
    io.restart();
    io.run();
    return;
  }
  for (;;) {
    if (what.push) receive_all(s, arena, what.size);
    if (what.pull) send_all(s, arena, what.size);
    if (what.push) asio::write(s, asio::buffer(text));
    asio::read(s, asio::buffer(text));
  }
}

void serve(address where, std::function<void(std::string const&)> const& listening) {
  asio::io_context io;
  asio::generic::stream_protocol::endpoint end;
  if (where.over == address::transport::tcp)
    end = asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0);
  else
    end = asio::local::stream_protocol::endpoint(std::string(1, '\0') + where.host);
  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor(io, end);
  if (where.over == address::transport::tcp) {
    auto const bound = acceptor.local_endpoint();
    asio::ip::tcp::endpoint tcp;
    std::memcpy(tcp.data(), bound.data(), bound.size());
    where.port = tcp.port();
  }
  std::vector<char> arena(largest, 1);
  listening(to_string(where));
  for (;;) {
    socket s(io);
    acceptor.accept(s);
    edl::net::detail::tune(s);
    try {
      serve_one(io, s, arena);
    } catch (std::exception const&) {
    }
  }
}

std::vector<double> measure(std::string const& where, load l) {
  if (l == load::in_flight_16) return {};
  asio::io_context io;
  socket s(io);
  address const to = edl::net::parse_address(where);
  bool const too_late = false;
  asio::co_spawn(io, edl::net::detail::connect(s, to, too_late), asio::detached);
  io.run();
  io.restart();
  small text{};
  order const what{pushes(l), bytes_of(l) > 0 && !pushes(l), bytes_of(l)};
  std::memcpy(text.data(), &what, sizeof what);
  if (l == load::ping) {
    using clock = std::chrono::steady_clock;
    std::vector<double> us;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          for (int i = -repeats(l) / 10; i < repeats(l); ++i) {
            auto const begin = clock::now();
            co_await asio::async_write(s, asio::buffer(text), asio::use_awaitable);
            co_await asio::async_read(s, asio::buffer(text), asio::use_awaitable);
            if (i >= 0) us.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
          }
        },
        asio::detached);
    io.run();
    return us;
  }
  s.non_blocking(false);
  std::vector<char> arena(what.size, 2);
  return timed(l, [&] {
    asio::write(s, asio::buffer(text));
    if (what.push) {
      send_all(s, arena, what.size);
      small ack;
      asio::read(s, asio::buffer(ack));
    } else {
      receive_all(s, arena, what.size);
    }
  });
}

}  // namespace

std::vector<contestant> bare_sockets() {
  std::vector<contestant> all;
  for (auto const& where : {address{address::transport::tcp, "127.0.0.1", 0},
                            address{address::transport::local,
                                    "edl-bench-bare-" + edl::net::token::random().secret().substr(0, 16), 0}})
    all.push_back({"bare", where.port == 0 && where.over == address::transport::tcp ? "TCP" : "Unix",
                   [where](auto const& listening) { serve(where, listening); }, measure});
  return all;
}

}  // namespace bench
