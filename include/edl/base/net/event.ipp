// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/associated_cancellation_slot.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

#include "edl/base/net/event.hpp"
#include "edl/base/net/time_limit.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

EDL_INLINE event::~event() {
  while (first_) resume(*first_, asio::error::operation_aborted);
}

EDL_INLINE void event::notify() {
  while (first_) resume(*first_, {});
}

EDL_INLINE void event::notify_here() {
  if (!first_) return;
  auto waiting = unlink(*first_);
  waiting(asio::error_code());
}

EDL_INLINE event::waiter::handler_type event::unlink(waiter& w) {
  invariant(w.handler.has_value(), "only a coroutine that waits is woken");
  invariant(w.previous ? w.previous->next == &w : first_ == &w, "a waiter is linked from the one before it");
  (w.previous ? w.previous->next : first_) = w.next;
  if (w.next) w.next->previous = w.previous;
  waiter::handler_type waiting = std::move(*w.handler);
  w.handler.reset();
  return waiting;
}

EDL_INLINE void event::resume(waiter& w, asio::error_code why) {
  if (!w.handler) return;  // already resumed
  asio::post(on_, [waiting = unlink(w), why]() mutable { waiting(why); });
}

EDL_INLINE asio::awaitable<void> event::wait_as(waiter& w, bool cancellable) {
  return asio::async_initiate<asio::use_awaitable_t<> const, void(asio::error_code)>(
      [this, &w, cancellable](waiter::handler_type waiting) {
        invariant(!w.handler && !w.next && !w.previous, "a waiter waits once");
        w.handler.emplace(std::move(waiting));
        w.next = first_;
        if (first_) first_->previous = &w;
        first_ = &w;
        // The coroutine empties the slot when it resumes, so `w` outlives the handler that is assigned here.
        if (auto slot = asio::get_associated_cancellation_slot(*w.handler);
            cancellable && slot.is_connected())
          slot.assign([this, &w](asio::cancellation_type) { resume(w, asio::error::operation_aborted); });
      },
      asio::use_awaitable);
}

EDL_INLINE asio::awaitable<void> event::wait() {
  waiter w;
  co_await wait_as(w, true);
}

EDL_INLINE asio::awaitable<void> event::wait_through() {
  waiter w;
  co_await wait_as(w, false);
}

EDL_INLINE asio::awaitable<bool> event::wait_until(time_point until) {
  waiter w;
  detail::time_limit const limit(on_, until, [this, &w] {
    w.timed_out = w.handler.has_value();
    resume(w, {});
  });
  co_await wait_as(w, true);
  co_return !w.timed_out;
}

}  // namespace edl::net
