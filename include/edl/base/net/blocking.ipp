// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "edl/base/net/blocking.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

struct started_call::state {
  state(channel& c, outgoing w) : to(c), sent(std::move(w)) {}

  // Errors pass between threads by value, so that no two threads share an exception object.
  void finish(std::exception_ptr const& e, reply r) {
    status why = status::ok;
    std::string because;
    try {
      if (e) std::rethrow_exception(e);
    } catch (call_error const& c) {
      why = c.code();
      because = c.what();
    } catch (std::exception const& other) {
      why = status::internal;
      because = to.name() + ": " + other.what();
    }
    finish(why, std::move(because), std::move(r));
  }

  void finish(status why, std::string because, reply r) {
    {
      std::lock_guard const lock(mutex);
      invariant(!over, "a call ends once");
      code = why;
      text = std::move(because);
      result = std::move(r);
      over = true;
    }
    changed.notify_all();
  }

  channel& to;
  outgoing const sent;
  asio::cancellation_signal signal;  // on the node's thread only
  std::mutex mutex;                  // guards what follows
  std::condition_variable changed;
  bool over = false;
  status code = status::ok;
  std::string text;
  reply result;
};

EDL_INLINE started_call::started_call(std::shared_ptr<state> s) : state_(std::move(s)) {}
EDL_INLINE started_call::started_call(started_call&&) noexcept = default;

EDL_INLINE started_call& started_call::operator=(started_call&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

EDL_INLINE started_call::~started_call() {
  if (!state_ || ready()) return;
  cancel();
  wait();
}

EDL_INLINE bool started_call::ready() const {
  std::lock_guard const lock(state_->mutex);
  return state_->over;
}

EDL_INLINE void started_call::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->over; });
}

EDL_INLINE bool started_call::wait_for(std::chrono::milliseconds d) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, d, [this] { return state_->over; });
}

EDL_INLINE void started_call::cancel() {
  state_->to.on().post([s = state_] { s->signal.emit(asio::cancellation_type::terminal); });
}

EDL_INLINE reply started_call::get() {
  invariant(state_ != nullptr, "only the owner of a call requests its reply");
  wait();
  if (state_->code != status::ok) throw call_error(state_->code, state_->text);
  return std::move(state_->result);
}

EDL_INLINE started_call start(channel& to, outgoing what) {
  if (to.on().on_thread())
    throw error(to.name() + ": a blocking call on the network's own thread would wait for ever; co_await it");
  auto s = std::make_shared<started_call::state>(to, std::move(what));
  bool const posted = to.on().post([s] {
    asio::co_spawn(s->to.on().executor(), s->to.call(s->sent),
                   asio::bind_cancellation_slot(s->signal.slot(), [s](std::exception_ptr const& e, reply r) {
                     s->finish(e, std::move(r));
                   }));
  });
  if (!posted) s->finish(status::cancelled, to.name() + ": the network of this process is stopping", {});
  return started_call(std::move(s));
}

EDL_INLINE reply wait(channel& to, outgoing what) { return start(to, std::move(what)).get(); }

}  // namespace edl::net
