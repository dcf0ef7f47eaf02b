// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/blocking.hpp"

#include <doctest/doctest.h>

#include <future>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"

namespace blocking_test {

using namespace peers;
using edl::net::start;
using edl::net::started_call;

TEST_CASE("several threads share a channel") {
  server s;
  client c(s.where());
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto const sent = pattern(30'000 + t, t);
      std::vector<std::byte> got(sent.size());
      for (int i = 0; i < 50; ++i) {
        auto const text = std::to_string(100 * t + unsigned(i));
        std::fill(got.begin(), got.end(), std::byte{});
        if (c.call({.method = echo, .message = text, .payload = {sent}, .into = {got}}).message == text &&
            got == sent)
          ++right;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 200);
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("calls to several peers run side by side") {
  server a, b, c;
  edl::net::node n(options());
  edl::net::channel to_a(n, {a.where()}, "ps-0"), to_b(n, {b.where()}, "ps-1"), to_c(n, {c.where()}, "ps-2");
  auto const sent = pattern(90'000, 4);
  std::vector<std::byte> got(sent.size());
  std::vector<started_call> calls;
  std::size_t part = 0;
  for (auto* to : {&to_a, &to_b, &to_c}) {
    calls.push_back(start(*to, {.method = echo,
                                .message = to->name(),
                                .payload = {edl::bytes(sent).subspan(part * 30'000, 30'000)},
                                .into = {std::span(got).subspan(part * 30'000, 30'000)}}));
    ++part;
  }
  for (auto& call : calls) CHECK(call.get().message.starts_with("ps-"));
  CHECK(got == sent);
}

TEST_CASE("a started call can be moved, asked and dropped") {
  server s;
  client c(s.where());
  auto a = start(c.channel, {.method = hold, .message = "a"});
  auto b = std::move(a);
  s.wait_held(1);
  CHECK_FALSE(b.ready());
  s.release();
  b.wait();
  CHECK(b.ready());
  b.cancel();  // too late
  CHECK(b.get().message == "a");
  b = start(c.channel, {.method = hold, .message = "b"});
  s.wait_held(2);
}

TEST_CASE("a blocking call on the network's thread is an error, not a deadlock") {
  server s;
  client c(s.where());
  std::promise<bool> refused;
  c.node.post([&] {
    try {
      c.echo("x");
      refused.set_value(false);
    } catch (edl::error const&) {
      refused.set_value(true);
    }
  });
  CHECK(refused.get_future().get());
}

}  // namespace blocking_test
