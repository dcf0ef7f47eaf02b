// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/error_code.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <optional>

#include "edl/core/clock.hpp"

namespace edl::net {

/// Lets a coroutine wait until another signals a change: a condition variable for coroutines of one node,
/// without a mutex, because they share its thread. `while (!condition) co_await changed.wait();` Thread
/// safety: only on the node's thread.
class event {
 public:
  explicit event(asio::any_io_executor on) : on_(std::move(on)) {}
  event(event const&) = delete;
  event& operator=(event const&) = delete;
  ~event();  ///< cancels waiting coroutines

  /// Wakes all coroutines that wait now. They run later, not within this call.
  void notify();

  /// Wakes one waiting coroutine; it resumes within this call.
  void notify_here();

  /// Returns at the next `notify`; throws `asio::system_error` if the coroutine is cancelled.
  asio::awaitable<void> wait();

  /// Returns at the next `notify`, cancelled or not.
  asio::awaitable<void> wait_through();

  /// `wait`, but returns false if `until` passes first.
  asio::awaitable<bool> wait_until(time_point until);

 private:
  struct waiter {
    using handler_type = asio::async_result<asio::use_awaitable_t<>, void(asio::error_code)>::handler_type;
    std::optional<handler_type> handler;
    waiter *next = nullptr, *previous = nullptr;
    bool timed_out = false;
  };
  asio::awaitable<void> wait_as(waiter& w, bool cancellable);
  waiter::handler_type unlink(waiter& w);
  void resume(waiter& w, asio::error_code why);

  asio::any_io_executor on_;
  waiter* first_ = nullptr;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/event.ipp"
#endif
