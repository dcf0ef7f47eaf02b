// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/node.hpp"

#include <doctest/doctest.h>

#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <future>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"

namespace node_test {

using edl::net::node;

TEST_CASE("work runs on the node's thread, and stopping cancels what waits") {
  node n(peers::options());
  CHECK_FALSE(n.on_thread());
  std::promise<bool> there;
  n.post([&] { there.set_value(n.on_thread()); });
  CHECK(there.get_future().get());

  std::promise<void> waiting;
  std::atomic<bool> cancelled = false;
  n.spawn([&]() -> asio::awaitable<void> {
    asio::steady_timer timer(n.executor(), std::chrono::hours(1));
    waiting.set_value();
    try {
      co_await timer.async_wait(asio::use_awaitable);
    } catch (asio::system_error const&) {
      cancelled = true;
      throw;
    }
  });
  waiting.get_future().wait();
  n.stop();
  CHECK(cancelled);
  CHECK_FALSE(n.post([] {}));
  CHECK_FALSE(n.spawn([]() -> asio::awaitable<void> { co_return; }));
  n.stop();  // once more is nothing
}

TEST_CASE("failing work is logged and harms nothing") {
  node n(peers::options());
  n.spawn([]() -> asio::awaitable<void> {
    throw edl::error("on purpose");
    co_return;
  });
  n.post([] { throw edl::error("on purpose"); });
  n.post([] { throw 1; });
  n.spawn([]() -> asio::awaitable<void> {
    throw 1;
    co_return;
  });
  std::promise<void> alive;
  n.post([&] { alive.set_value(); });
  alive.get_future().wait();
}

TEST_CASE("a node may be stopped from its own thread and from several others at once") {
  auto n = std::make_unique<node>(peers::options());
  n->post([&] { n->stop(); });
  auto const other = std::async(std::launch::async, [&] { n->stop(); });
  n->stop();
  other.wait();
  n.reset();
}

TEST_CASE("nothing is attached to a node that stops, and a job has a name") {
  node n(peers::options());
  n.stop();
  CHECK(peers::outcome_of([&] { edl::net::channel(n, {peers::any_port()}, "late"); }).code ==
        peers::status::cancelled);
  auto options = peers::options();
  options.job = "";
  CHECK_THROWS_AS(node{options}, edl::error);
}

}  // namespace node_test
