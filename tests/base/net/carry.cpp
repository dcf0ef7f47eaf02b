// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/carry.hpp"

#include <doctest/doctest.h>

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <future>
#include <stdexcept>

#include "base/net/peers.hpp"

namespace carry_test {

using namespace std::chrono_literals;

TEST_CASE("who depends on a coroutine is told why it ended, and not when it was only stopped") {
  std::promise<std::string> why;
  std::atomic<int> stopped{0};
  {
    edl::net::node node(peers::options());
    std::promise<void> waits;
    edl::net::carry(
        node,
        [&]() -> asio::awaitable<void> {
          asio::steady_timer timer(node.executor(), 1h);
          waits.set_value();
          co_await timer.async_wait(asio::use_awaitable);
        },
        [&](std::string const&) { ++stopped; });
    edl::net::carry(
        node, []() -> asio::awaitable<void> { co_return; }, [&](std::string const&) { ++stopped; });
    edl::net::carry(
        node,
        []() -> asio::awaitable<void> {
          throw std::runtime_error("the disk is gone");
          co_return;
        },
        [&](std::string const& text) { why.set_value(text); });
    CHECK(why.get_future().get() == "the disk is gone");
    waits.get_future().get();
  }
  CHECK(stopped == 0);
}

}  // namespace carry_test
