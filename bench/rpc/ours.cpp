// SPDX-License-Identifier: Apache-2.0
// This project's calls, from a coroutine and from a blocking thread.
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <asio/use_future.hpp>
#include <atomic>
#include <cstring>

#include "contestant.hpp"
#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"

namespace bench {
namespace {

using edl::net::address;
using edl::net::outgoing;

enum method : std::uint16_t { ping, push, pull };

using security = edl::net::transport_security;

edl::net::node_options options(security s) {
  return {.job = "bench", .secret = edl::net::token("the token of the benchmark"), .security = s};
}

void serve(address const& where, security s, std::function<void(std::string const&)> const& listening) {
  std::vector<std::byte> arena(largest, std::byte{1});
  edl::net::node node(options(s));
  edl::net::listener listener(node, {where}, [&](edl::net::request& r) -> asio::awaitable<void> {
    switch (r.method()) {
      case push:
        co_await r.read(std::span(arena).first(r.payload_size()));
        co_await r.reply(std::string_view());
        break;
      case pull: {
        std::uint64_t size = 0;
        std::memcpy(&size, r.message().data(), sizeof size);
        edl::bytes const part = edl::bytes(arena).first(size);
        co_await r.reply(std::string_view(), std::span(&part, 1));
        break;
      }
      default:
        co_await r.reply(r.message());
    }
  });
  listening(to_string(listener.addresses()[0]));
  for (;;) ::pause();
}

outgoing make(load l, std::vector<std::byte>& arena) {
  outgoing o{.method = ping, .message = std::string(small_bytes - 32, 'x')};
  if (bytes_of(l) == 0) return o;
  arena.resize(bytes_of(l), std::byte{2});
  std::uint64_t const size = bytes_of(l);
  o.method = pushes(l) ? push : pull;
  o.message.assign(reinterpret_cast<char const*>(&size), sizeof size);
  if (pushes(l))
    o.payload.push_back(arena);
  else
    o.into.push_back(arena);
  return o;
}

asio::awaitable<void> keep_calling(edl::net::channel& to, outgoing const& what, std::atomic<bool> const& over,
                                   std::atomic<long>& done) {
  while (!over) {
    co_await to.call(what);
    ++done;
  }
}

std::vector<double> calls_per_second(edl::net::channel& to, outgoing const& what) {
  std::atomic<bool> over = false;
  std::atomic<long> done = 0;
  std::vector<std::future<void>> all;
  auto const begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 16; ++i)
    all.push_back(asio::co_spawn(to.on().executor(), keep_calling(to, what, over, done), asio::use_future));
  ::usleep(400'000);
  double const rate =
      double(done) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  over = true;
  for (auto& f : all) f.get();
  return {rate};
}

asio::awaitable<std::vector<double>> from_coroutine(edl::net::channel& to, outgoing const& what, load l) {
  using clock = std::chrono::steady_clock;
  std::vector<double> us;
  int const n = repeats(l);
  for (int i = -(n / 10 + 1); i < n; ++i) {
    auto const begin = clock::now();
    co_await to.call(what);
    if (i >= 0) us.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  co_return us;
}

std::vector<double> measure(std::string const& where, load l, bool blocking, security s) {
  edl::net::node node(options(s));
  edl::net::channel to(node, {edl::net::parse_address(where)}, "peer");
  std::vector<std::byte> arena;
  outgoing const what = make(l, arena);
  if (l == load::in_flight_16) return blocking ? std::vector<double>{} : calls_per_second(to, what);
  if (blocking) return timed(l, [&] { edl::net::wait(to, what); });
  return asio::co_spawn(node.executor(), from_coroutine(to, what, l), asio::use_future).get();
}

}  // namespace

std::vector<contestant> ours() {
  std::vector<contestant> all;
  address const tcp{address::transport::tcp, "127.0.0.1", 0};
  auto const local = [] {
    return address{address::transport::local, "edl-bench-" + edl::net::token::random().secret().substr(0, 16),
                   0};
  };
  auto const add = [&](std::string name, address const& where, security s, bool blocking) {
    all.push_back({std::move(name), where.over == address::transport::tcp ? "TCP" : "Unix",
                   [where, s](auto const& listening) { serve(where, s, listening); },
                   [blocking, s](auto const& at, load l) { return measure(at, l, blocking, s); }});
  };
  add("edl", tcp, security::none, false);
  add("edl, TLS", tcp, security::tls, false);
  add("edl", local(), security::none, false);
  add("edl, blocking", tcp, security::none, true);
  add("edl, blocking", local(), security::none, true);
  return all;
}

}  // namespace bench
