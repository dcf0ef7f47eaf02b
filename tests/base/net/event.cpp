// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/event.hpp"

#include <doctest/doctest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/system_error.hpp>
#include <vector>

namespace event_test {

using edl::net::event;

TEST_CASE("an event wakes all that wait, and none that comes later") {
  asio::io_context io;
  event changed(io.get_executor());
  std::vector<int> woken;
  auto const waiter = [&](int id) -> asio::awaitable<void> {
    co_await changed.wait();
    woken.push_back(id);
  };
  changed.notify();
  for (int i = 0; i < 3; ++i) asio::co_spawn(io, waiter(i), asio::detached);
  io.poll();
  CHECK(woken.empty());
  changed.notify();
  CHECK(woken.empty());  // they run later
  asio::co_spawn(io, waiter(3), asio::detached);
  io.restart();
  io.poll();
  CHECK(woken.size() == 3);
  changed.notify();
  io.restart();
  io.run();
  CHECK(woken.size() == 4);
}

TEST_CASE("a wait ends by cancellation, by time, or not at all until it is told") {
  asio::io_context io;
  event changed(io.get_executor());
  bool cancelled = false, through = false, in_time = true;
  asio::cancellation_signal a, b;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        try {
          co_await changed.wait();
        } catch (asio::system_error const&) {
          cancelled = true;
        }
      },
      asio::bind_cancellation_slot(a.slot(), asio::detached));
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        co_await changed.wait_through();
        through = true;
      },
      asio::bind_cancellation_slot(b.slot(), asio::detached));
  io.poll();
  a.emit(asio::cancellation_type::terminal);
  b.emit(asio::cancellation_type::terminal);
  io.poll();
  CHECK(cancelled);
  CHECK_FALSE(through);
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        in_time =
            co_await changed.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
        changed.notify();
      },
      asio::detached);
  io.run();
  CHECK_FALSE(in_time);
  CHECK(through);
}

TEST_CASE("an event that ends takes its waiters with it") {
  asio::io_context io;
  bool cancelled = false;
  {
    event changed(io.get_executor());
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          try {
            co_await changed.wait();
          } catch (asio::system_error const&) {
            cancelled = true;
          }
        },
        asio::detached);
    io.poll();
  }
  io.restart();
  io.run();
  CHECK(cancelled);
}

}  // namespace event_test
