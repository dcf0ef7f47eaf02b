// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <utility>

#include "edl/base/net/connection.hpp"
#include "edl/base/net/traffic.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/method.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"

namespace edl::net {

namespace detail {

// Large enough for several small frames in one read, small enough that copying the beginning of a payload out
// of it costs nothing.
inline constexpr std::size_t input_size = 16u << 10;
// Below this a copy through the input buffer is cheaper than a read of its own.
inline constexpr std::size_t direct_read = 4u << 10;
// The bytes that one connection may move before it yields to others.
inline constexpr std::size_t turn = 4u << 20;
inline constexpr std::uint64_t call_slots = 1u << 20;
// The longest pause between two queries about one call.
inline constexpr std::chrono::milliseconds longest_pause{10'000};

EDL_INLINE std::uint64_t total_size(auto const& parts) {
  std::uint64_t n = 0;
  for (auto const& part : parts) n += part.size();
  return n;
}

EDL_INLINE bool try_later(asio::error_code const& e) {
  return e == asio::error::would_block || e == asio::error::try_again || e == asio::error::interrupted;
}

// The time left for a call as a frame carries it: at least a millisecond; 0 means no deadline.
EDL_INLINE std::uint32_t milliseconds_left(time_point deadline) {
  if (deadline == time_point::max()) return 0;
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count();
  return std::uint32_t(std::clamp<std::int64_t>(left, 1, UINT32_MAX));
}

}  // namespace detail

struct connection::pending {
  pending(connection& c, wire::frame_header const& h, outgoing const& w, clock::time_point d)
      : sent(w),
        frame(h, std::as_bytes(std::span(w.message)), w.payload),
        changed(c.on_),
        deadline(d),
        call(h.call) {
    frame.changed = &changed;
  }
  bool over() const { return completed && frame.finished; }

  outgoing const& sent;
  outbound frame;
  event changed;
  clock::time_point deadline;
  std::uint64_t call;
  clock::time_point ask_at = clock::time_point::max();  // once its request is sent
  std::chrono::milliseconds pause = {};                 // between queries
  bool completed = false;
  status code = status::ok;
  std::string text;
  reply result;
};

EDL_INLINE std::shared_ptr<connection> connection::open(secure_socket s, std::string peer,
                                                        limits const& bounds, logger const& log,
                                                        handler serve, std::function<void()> at_close) {
  auto self = std::make_shared<connection>(std::move(s), std::move(peer), bounds, log, std::move(serve));
  self->at_close_ = std::move(at_close);
  auto const start = [&](asio::awaitable<void> (connection::*loop)()) {
    asio::co_spawn(self->on_, ((*self).*loop)(), [self](std::exception_ptr) {});
  };
  start(&connection::read_loop);
  start(&connection::write_loop);
  start(&connection::watch_loop);
  return self;
}

EDL_INLINE connection::connection(secure_socket s, std::string peer, limits const& bounds, logger const& log,
                                  handler serve)
    : on_(s.executor()),
      socket_(std::move(s)),
      peer_(std::move(peer)),
      bounds_(bounds),
      log_(log),
      serve_(std::move(serve)),
      input_(detail::input_size),
      payload_taken_(on_),
      slot_free_(on_),
      blocked_(on_),
      timer_(on_) {
  socket_.plain().non_blocking(true);
}

EDL_INLINE connection::~connection() = default;

EDL_INLINE void connection::close(status why, std::string const& text) {
  if (closed_) return;
  closed_ = true;
  closed_status_ = why;
  closed_text_ = fmt::format("{}: {}", peer_, text);
  socket_.close();
  timer_.cancel();
  // Clear this before completing the calls: from then on their memory belongs to their callers again.
  scatter_ = nullptr;
  payload_owner_ = nullptr;
  while (outbound* const frame = queue_.front()) {
    queue_.pop();
    finish(*frame, true);
  }
  for (pending* p : std::exchange(calls_, {}))
    if (p) complete(*p, why, closed_text_);
  for (auto const& r : active_) cancel(*r);
  blocked_.notify();
  payload_taken_.notify();
  slot_free_.notify();
  check();
  // Last, because the owner may then release this connection.
  if (auto const notify = std::exchange(at_close_, nullptr)) notify();
}

// The class's invariants between calls of its functions.
EDL_INLINE void connection::check() const {
  invariant(begin_ <= end_ && end_ <= input_.size(), "buffered bytes lie within the input buffer");
  invariant(closed_ == (closed_status_ != status::ok), "a closed connection has the status of its end");
  invariant(closed_ || free_calls_.size() <= calls_.size(), "no more slots are free than exist");
  invariant(!closed_ || queue_.empty(), "nothing waits to be sent on a closed connection");
  invariant(!closed_ || (!scatter_ && !payload_owner_), "no call receives from a closed connection");
  invariant(!scatter_ || !payload_owner_, "one payload is received at a time");
}
// ---- Calls made here

EDL_INLINE asio::awaitable<reply> connection::call(outgoing const& what, clock::time_point deadline) {
  if (closed_) throw call_error(closed_status_, closed_text_);
  if (what.message.size() > wire::frame_limits{}.message)
    throw call_error(status::invalid,
                     fmt::format("{}: a message of {} bytes is larger than the {} that a frame takes", peer_,
                                 what.message.size(), wire::frame_limits{}.message));
  if (free_calls_.empty()) {
    if (calls_.size() >= detail::call_slots)
      throw call_error(status::unavailable,
                       fmt::format("{}: {} calls are already waiting", peer_, calls_.size()));
    free_calls_.push_back(std::uint32_t(calls_.size()));
    calls_.push_back(nullptr);
  }
  std::uint32_t const slot = free_calls_.back();
  wire::frame_header const h{.kind = wire::frame_kind::request,
                             .method = what.method,
                             .call = ++sequence_ * detail::call_slots + slot,
                             .deadline_ms = detail::milliseconds_left(deadline),
                             .message_size = std::uint32_t(what.message.size()),
                             .payload_size = detail::total_size(what.payload)};
  invariant(slot < calls_.size() && !calls_[slot], "a free slot has no call");
  pending p(*this, h, what, deadline);
  free_calls_.pop_back();
  calls_[slot] = &p;
  invariant(find(h.call) == &p, "a call is found by its number while it waits");
  unanswered_since_ = std::min(unanswered_since_, clock::now());
  enqueue(p.frame);
  arm(std::min(deadline, clock::now() + bounds_.ask));
  try {
    while (!p.over()) co_await p.changed.wait();
  } catch (asio::system_error const&) {
    give_up(p, status::cancelled, peer_ + ": the call was cancelled");
  }
  invariant(p.over() && scatter_ != &p && find(p.call) != &p,
            "nothing reads or writes the memory of a call that has returned");
  if (p.code != status::ok) throw call_error(p.code, p.text);
  co_return std::move(p.result);
}

EDL_INLINE connection::pending* connection::find(std::uint64_t call) const {
  std::size_t const slot = call % detail::call_slots;
  return slot < calls_.size() && calls_[slot] && calls_[slot]->call == call ? calls_[slot] : nullptr;
}

EDL_INLINE void connection::complete(pending& p, status why, std::string text, bool here) {
  if (p.completed) return;
  invariant(why == status::ok || !text.empty(), "a failed call has a reason");
  p.completed = true;
  p.code = why;
  p.text = std::move(text);
  if (pending* const waiting = find(p.call)) {
    invariant(waiting == &p, "a call frees its own slot");
    calls_[p.call % detail::call_slots] = nullptr;
    free_calls_.push_back(std::uint32_t(p.call % detail::call_slots));
  }
  // The socket may still be reading the caller's request: whoever finishes the frame then wakes the caller.
  if (!p.frame.finished) return;
  if (here)
    p.changed.notify_here();
  else
    p.changed.notify();
}

// After this, nothing reads or writes the caller's memory.
EDL_INLINE void connection::give_up(pending& p, status why, std::string text) {
  bool const sent = p.frame.finished && !p.frame.failed, open = !p.completed;
  complete(p, why, std::move(text));
  if (scatter_ == &p) scatter_ = nullptr;
  if (!p.frame.finished && p.frame.done == 0 && queue_.remove(p.frame))
    p.frame.finished = p.frame.failed = true;
  if (!p.frame.finished) close(status::unavailable, "a call was given up while its request was half sent");
  invariant(p.over(), "a call that was given up is over");
  if (sent && open && !closed_) enqueue_owned({.kind = wire::frame_kind::cancel, .call = p.call}, {});
}

// Closes this connection, although this process lives on: a last frame tells the peer so, if it still
// receives anything.
EDL_INLINE void connection::go_elsewhere(std::string const& why) {
  wire::Failure failure;
  failure.set_code(std::uint32_t(status::cancelled));
  failure.set_text("the caller continues over another connection");
  enqueue_owned({.kind = wire::frame_kind::failure}, failure.SerializeAsString());
  flush();
  close(status::unavailable, why);
}

// ---- Output

EDL_INLINE void connection::enqueue(outbound& frame) {
  if (closed_) return finish(frame, true);
  queue_.push(frame);
  if (corked_) return;
  // A single frame leaves at once. With other calls active, it waits for frames that this turn of the event
  // loop adds.
  if (calls_.size() - free_calls_.size() + active_.size() > 1)
    blocked_.notify();
  else
    flush();
}

EDL_INLINE void connection::enqueue_owned(wire::frame_header const& h, std::string message) {
  wire::frame_header whole = h;
  whole.message_size = std::uint32_t(message.size());
  auto owned = std::make_unique<outbound>(whole, bytes{}, std::span<bytes const>{});
  outbound& frame = *owned;
  frame.text = std::move(message);
  frame.message = std::as_bytes(std::span(frame.text));
  frame.self = std::move(owned);
  enqueue(frame);
}

EDL_INLINE void connection::finish(outbound& frame, bool failed) {
  invariant(!frame.finished, "a frame is finished once");
  auto const end = std::move(frame.self);  // frees a frame of the queue's own when this returns
  frame.finished = true;
  frame.failed = failed;
  if (frame.changed) frame.changed->notify();
}

// Sends as much as the socket accepts. Frames that are queued together leave in one write.
EDL_INLINE void connection::flush() {
  for (std::size_t moved = 0; !full_ && !closed_ && (!queue_.empty() || socket_.unsent());) {
    asio::error_code failed;
    std::size_t n = 0;
    try {
      n = socket_.write_some(queue_.gather(), failed);
    } catch (error const& e) {
      return close(status::unavailable, e.what());
    }
    if (failed && !detail::try_later(failed))
      return close(status::unavailable, "the connection is lost: " + failed.message());
    moved += n;
    detail::count(total_traffic().sent, n);
    if (n > 0 || !failed) write_since_ = clock::time_point::max();
    while (n > 0) {
      invariant(!queue_.empty(), "no more is sent than is queued");
      outbound& frame = *queue_.front();
      n = queue_.advance(n);
      if (frame.done < frame.size) break;
      queue_.pop();
      finish(frame, false);
    }
    if (failed && write_since_ == clock::time_point::max()) {
      write_since_ = clock::now();
      arm(write_since_ + bounds_.stall);
    }
    full_ = failed || moved >= detail::turn;
  }
  check();
  if (full_) blocked_.notify();
}

EDL_INLINE asio::awaitable<void> connection::write_loop() {
  while (!closed_) {
    if (!full_)
      co_await blocked_.wait();
    else if (write_since_ != clock::time_point::max())
      co_await socket_.writable();
    else  // it has used up its turn
      co_await asio::post(on_, asio::use_awaitable);
    full_ = false;
    flush();
  }
}

// ---- Input

EDL_INLINE void connection::in_frame(bool waiting) {
  read_since_ = waiting ? clock::now() : clock::time_point::max();
  if (waiting) arm(read_since_ + bounds_.stall);
}

EDL_INLINE asio::awaitable<void> connection::fill(std::size_t size) {
  invariant(begin_ <= end_ && end_ <= input_.size() && size <= input_.size(),
            "the awaited bytes fit the input buffer");
  bool const inside = size != wire::frame_header_size;
  while (buffered() < size) {
    if (begin_ == end_) {
      begin_ = end_ = 0;
    } else if (input_.size() - begin_ < size) {
      // Move the received part to the front, so that the rest fits behind it.
      std::memmove(input_.data(), input_.data() + begin_, buffered());
      end_ -= begin_;
      begin_ = 0;
    }
    // Between two frames a peer may be silent for any time.
    if (inside || buffered() > 0) in_frame(true);
    flush();
    if (input_end_) std::rethrow_exception(input_end_);
    auto const room = std::span(input_).subspan(end_);
    invariant(!room.empty(), "the input buffer has room for the awaited bytes");
    std::size_t n = 0;
    try {
      if (socket_.secured())
        n = co_await socket_.read_some(room);
      else
        n = co_await socket_.plain().async_read_some(asio::buffer(room.data(), room.size()),
                                                     asio::use_awaitable);
    } catch (...) {
      keep_end(std::current_exception());
      throw;
    }
    end_ += n;
    invariant(end_ <= input_.size(), "no more bytes are received than the buffer has room for");
    detail::count(total_traffic().received, n);
    heard();
    in_frame(false);
  }
}

// The end of the input is reported only once. A handler that meets it in its payload keeps it for the read
// loop, which would otherwise wait for it until the connection counts as unresponsive.
EDL_INLINE void connection::keep_end(std::exception_ptr why) {
  try {
    std::rethrow_exception(why);
  } catch (asio::system_error const& e) {
    if (e.code() == asio::error::operation_aborted) return;  // the reader was cancelled
  } catch (...) {
  }
  input_end_ = std::move(why);
}

// Receives the next bytes, and subtracts their number from `left`. With `scattering` it stops as soon as the
// call that owns the memory has been abandoned; it checks between two reads, because no read may stay pending
// on a caller's memory.
EDL_INLINE asio::awaitable<void> connection::take(std::span<std::byte> into, std::uint64_t& left,
                                                  bool scattering) {
  invariant(into.size() <= left, "no more is taken than the frame has left");
  std::size_t moved = 0;
  while (!into.empty()) {
    std::size_t n = std::min(buffered(), into.size());
    if (n > 0) {
      std::memcpy(into.data(), input_.data() + begin_, n);
      begin_ += n;
    } else if (into.size() < detail::direct_read) {
      co_await fill(1);
      if (scattering && !scatter_) co_return;
      continue;
    } else {
      asio::error_code failed;
      n = socket_.read_some(into, failed);
      detail::count(total_traffic().received, n);
      if (n > 0) heard();
      if (failed && !detail::try_later(failed)) {
        keep_end(std::make_exception_ptr(asio::system_error(failed)));
        std::rethrow_exception(input_end_);
      }
      if (failed || moved + n >= detail::turn) {
        left -= n;
        into = into.subspan(n);
        moved = 0;
        if (into.empty()) co_return;
        in_frame(true);
        flush();
        if (failed)
          co_await socket_.readable();
        else
          co_await asio::post(on_, asio::use_awaitable);
        in_frame(false);
        if (scattering && !scatter_) co_return;
        continue;
      }
      moved += n;
    }
    left -= n;
    into = into.subspan(n);
  }
}

EDL_INLINE asio::awaitable<void> connection::drop(std::uint64_t& left) {
  while (left > 0) {
    if (buffered() == 0) co_await fill(1);
    std::size_t const n = std::size_t(std::min<std::uint64_t>(buffered(), left));
    begin_ += n;
    left -= n;
  }
}

EDL_INLINE asio::awaitable<std::string> connection::take_message(wire::frame_header const& h) {
  std::string text(h.message_size, '\0');
  std::uint64_t left = text.size(), padding = wire::frame_padding(h);
  co_await take(std::as_writable_bytes(std::span(text)), left);
  co_await drop(padding);
  co_return text;
}

EDL_INLINE asio::awaitable<void> connection::read_loop() {
  std::string why;
  try {
    while (!closed_) {
      co_await fill(wire::frame_header_size);
      wire::frame_header const h =
          wire::decode(std::span(input_).subspan(begin_).first<wire::frame_header_size>(), bounds_.frame);
      begin_ += wire::frame_header_size;
      invariant(!scatter_ && !payload_owner_, "a frame begins where the one before has ended");
      switch (h.kind) {
        case wire::frame_kind::request:
          co_await on_request(h);
          break;
        case wire::frame_kind::response:
          co_await on_response(h);
          break;
        case wire::frame_kind::failure:
          co_await on_failure(h);
          break;
        case wire::frame_kind::cancel:
          for (auto const& r : active_)
            if (r->header_.call == h.call) cancel(*r);
          break;
        default:
          throw error(fmt::format("a frame of kind {} after the handshake", int(h.kind)));
      }
    }
  } catch (asio::system_error const& e) {
    why = e.code() == asio::error::eof ? "the peer closed the connection"
                                       : "the connection is lost: " + e.code().message();
  } catch (error const& e) {
    why = e.what();
    log_.warning(fmt::format("{}: {}; the connection is closed", peer_, why));
  }
  close(status::unavailable, why);
}

EDL_INLINE asio::awaitable<void> connection::on_response(wire::frame_header const& h) {
  std::string message = co_await take_message(h);
  payload_left_ = h.payload_size;
  pending* p = find(h.call);
  std::uint64_t const room = p ? detail::total_size(p->sent.into) : 0;
  if (!p || room != h.payload_size) {
    co_await drop(payload_left_);
    if (p = find(h.call); p)
      complete(*p, status::invalid,
               fmt::format("{}: the reply to method {} has a payload of {} bytes where {} are expected",
                           peer_, p->sent.method, h.payload_size, room));
    co_return;
  }
  invariant(!scatter_ && !payload_owner_, "one payload is received at a time");
  scatter_ = p;
  for (std::size_t i = 0; scatter_ && i < scatter_->sent.into.size(); ++i)
    co_await take(scatter_->sent.into[i], payload_left_, true);
  if (pending* const done = std::exchange(scatter_, nullptr)) {
    invariant(payload_left_ == 0, "a reply that is whole leaves nothing of its payload");
    done->result.message = std::move(message);
    corked_ = buffered() > 0;
    complete(*done, status::ok, {}, true);
    corked_ = false;
  }
  // The rest belongs to a caller that has given up meanwhile.
  co_await drop(payload_left_);
}

EDL_INLINE asio::awaitable<void> connection::on_failure(wire::frame_header const& h) {
  std::string const message = co_await take_message(h);
  wire::Failure failure;
  if (!failure.ParseFromString(message) || failure.code() == std::uint32_t(status::ok))
    throw error("a failure frame that cannot be read");
  // Call 0 belongs to no call: the peer refers to the connection.
  if (h.call == 0) {
    close(status(failure.code()), printable(failure.text()));
  } else if (pending* const p = find(h.call)) {
    complete(*p, status(failure.code()), fmt::format("{}: {}", peer_, printable(failure.text())));
  }
}

// ---- Calls served here

// A served call stays in `active_` until its reply is on its way, and the reply precedes this answer.
EDL_INLINE asio::awaitable<void> connection::on_question(wire::frame_header const& h) {
  std::string const message = co_await take_message(h);
  payload_left_ = h.payload_size;
  co_await drop(payload_left_);
  wire::AskRequest request;
  if (!request.ParseFromString(message)) throw error("a request that cannot be read");
  wire::AskReply reply;
  reply.set_under_way(std::ranges::any_of(
      active_, [&](auto const& r) { return r->header_.call == request.call() && !r->cancelled_; }));
  std::string answer = reply.SerializeAsString();
  wire::frame_header const head{
      .kind = wire::frame_kind::response, .call = h.call, .message_size = std::uint32_t(answer.size())};
  enqueue_owned(head, std::move(answer));
}

EDL_INLINE asio::awaitable<void> connection::on_request(wire::frame_header const& h) {
  // A query takes no handler's slot: when all slots are taken, queries are what shows that the handlers are
  // alive.
  if (h.method == wire::method::ask) co_return co_await on_question(h);
  flush();
  while (active_.size() >= bounds_.handlers && !closed_) co_await slot_free_.wait();
  std::unique_ptr<request> fresh;
  if (idle_.empty()) {
    fresh.reset(new request(*this));
  } else {
    fresh = std::move(idle_.back());
    idle_.pop_back();
  }
  request& r = *fresh;
  r.header_ = h;
  r.cancelled_ = r.replied_ = r.reading_ = false;
  r.deadline_ =
      h.deadline_ms == 0 ? clock::time_point::max() : clock::now() + std::chrono::milliseconds(h.deadline_ms);
  r.message_.resize(h.message_size);
  std::uint64_t left = h.message_size, padding = wire::frame_padding(h);
  co_await take(r.message_, left);
  co_await drop(padding);
  if (closed_) co_return;
  invariant(active_.size() < bounds_.handlers, "no more handlers run than are allowed");
  invariant(!payload_owner_ && !scatter_, "one payload is received at a time");
  payload_left_ = h.payload_size;
  payload_owner_ = h.payload_size > 0 ? &r : nullptr;
  active_.push_back(std::move(fresh));
  corked_ = h.payload_size == 0 && buffered() > 0;
  asio::co_spawn(
      on_, serve(r),
      asio::bind_cancellation_slot(r.signal_.slot(),
                                   [self = shared_from_this(), &r](std::exception_ptr) { self->retire(r); }));
  corked_ = false;
  if (h.payload_size == 0) co_return;
  flush();
  auto const deadline = clock::now() + bounds_.stall;
  while (payload_owner_ == &r) {
    if (r.reading_)
      co_await payload_taken_.wait();
    else if (!co_await payload_taken_.wait_until(deadline) && payload_owner_ == &r && !r.reading_)
      payload_owner_ = nullptr;
  }
  if (!closed_) co_await drop(payload_left_);
}

EDL_INLINE asio::awaitable<void> connection::serve(request& r) {
  status code = status::ok;
  std::string text;
  try {
    if (!serve_) throw call_error(status::unknown_method, "this process serves no calls");
    co_await serve_(r);
    if (!r.replied_) throw error("its handler ended without a reply");
  } catch (call_error const& e) {
    code = e.code();
    text = e.what();
  } catch (error const& e) {
    code = status::internal;
    text = e.what();
  } catch (std::exception const& e) {
    code = r.cancelled_ ? status::cancelled : status::internal;
    text = e.what();
    if (!r.cancelled_) log_.error(fmt::format("{}: method {} failed: {}", peer_, r.method(), text));
  }
  if (code == status::ok || closed_) co_return;
  if (r.replied_) {
    if (!r.cancelled_)
      log_.error(fmt::format("{}: method {} failed after its reply: {}", peer_, r.method(), text));
    co_return;
  }
  wire::Failure failure;
  failure.set_code(std::uint32_t(code));
  failure.set_text(printable(text));
  enqueue_owned({.kind = wire::frame_kind::failure, .call = r.header_.call}, failure.SerializeAsString());
}

EDL_INLINE void connection::retire(request& r) {
  if (payload_owner_ == &r) {
    payload_owner_ = nullptr;
    payload_taken_.notify();
  }
  auto const it = std::find_if(active_.begin(), active_.end(), [&r](auto const& a) { return a.get() == &r; });
  invariant(it != active_.end(), "a handler that ends was running");
  if (r.message_.capacity() > detail::input_size) std::vector<std::byte>().swap(r.message_);
  idle_.push_back(std::move(*it));
  *it = std::move(active_.back());
  active_.pop_back();
  check();
  slot_free_.notify();
}

EDL_INLINE void connection::cancel(request& r) {
  if (r.cancelled_) return;
  r.cancelled_ = true;
  r.signal_.emit(asio::cancellation_type::terminal);
}

// ---- Time

EDL_INLINE void connection::arm(clock::time_point at) {
  if (at >= armed_ || closed_) return;
  armed_ = at;
  // The watching loop wakes, and then waits for the earlier time.
  timer_.cancel();
}

// When to check this call again. While its request is only partly sent, there is no reply to query.
EDL_INLINE time_point connection::look_at(pending& p, clock::time_point now) {
  if (p.sent.method == wire::method::ask) return clock::time_point::max();
  if (!p.frame.finished) return now + bounds_.ask;
  if (p.ask_at == clock::time_point::max()) {
    p.pause = bounds_.ask;
    p.ask_at = now + p.pause;
  }
  // A query behind data that is still being sent could not be answered in time. The progress of that data is
  // watched instead.
  if (p.ask_at <= now && (!queue_.empty() || socket_.unsent())) p.ask_at = now + bounds_.ask;
  if (p.ask_at <= now) {
    p.pause = std::min(2 * p.pause, detail::longest_pause);
    p.ask_at = now + bounds_.silence + p.pause;  // if no answer comes
    asio::co_spawn(on_, ask_about(p.call), [self = shared_from_this()](std::exception_ptr) {});
  }
  return p.ask_at;
}

// An unanswered query passes its deadline like any call.
EDL_INLINE asio::awaitable<void> connection::ask_about(std::uint64_t call) {
  wire::AskRequest request;
  request.set_call(call);
  outgoing const what{
      .method = wire::method::ask, .message = request.SerializeAsString(), .timeout = bounds_.silence};
  wire::AskReply answer;
  try {
    reply const got = co_await this->call(what, clock::now() + bounds_.silence);
    if (!answer.ParseFromString(got.message)) co_return;
  } catch (call_error const&) {
    co_return;
  }
  pending* const p = find(call);
  if (!p) co_return;
  if (!answer.under_way())
    co_return complete(*p, status::unavailable,
                       fmt::format("{}: the reply to method {} was lost on its way", peer_, p->sent.method));
  p->ask_at = clock::now() + p->pause;
  arm(p->ask_at);
}

EDL_INLINE time_point connection::check_deadlines() {
  auto const now = clock::now();
  auto next = clock::time_point::max();
  bool late = false;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    pending* const p = calls_[i];
    if (!p) continue;
    late = late || p->deadline <= now;
    if (p->deadline <= now)
      give_up(*p, status::deadline_exceeded,
              fmt::format("{}: no reply to method {} within {} ms", peer_, p->sent.method,
                          p->sent.timeout.count()));
    else
      next = std::min({next, p->deadline, look_at(*p, now)});
  }
  // If something on this connection's path loses the answers, another connection may avoid it.
  if (late && unanswered_since_ != clock::time_point::max() && now - unanswered_since_ >= bounds_.silence)
    go_elsewhere(
        fmt::format("calls are not answered, and nothing has come for {} ms", bounds_.silence.count()));
  for (auto const since : {read_since_, write_since_}) {
    if (since == clock::time_point::max()) continue;
    if (since + bounds_.stall <= now)
      close(status::unavailable,
            fmt::format("no progress for {} ms in the middle of a frame", bounds_.stall.count()));
    else
      next = std::min(next, since + bounds_.stall);
  }
  return next;
}

EDL_INLINE asio::awaitable<void> connection::watch_loop() {
  while (!closed_) {
    armed_ = clock::time_point::max();
    armed_ = std::min(check_deadlines(), armed_);  // a query arms its own timer
    if (closed_) break;
    asio::error_code ignored;
    timer_.expires_at(armed_);
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace edl::net
