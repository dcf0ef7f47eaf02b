// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/base/net/connection.hpp"
#include "edl/base/net/request.hpp"
#include "edl/base/net/status.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

struct request::release {
  connection& on;
  ~release() {
    on.payload_owner_ = nullptr;
    on.payload_taken_.notify();
  }
};

EDL_INLINE bool request::goes_elsewhere() const { return on_.closed_status() == status::cancelled; }

EDL_INLINE std::string const& request::peer() const { return on_.peer(); }

EDL_INLINE std::chrono::milliseconds request::time_left() const {
  using namespace std::chrono;
  if (deadline_ == time_point::max()) return hours(24 * 365);
  return std::max(milliseconds(0), duration_cast<milliseconds>(deadline_ - clock::now()));
}

EDL_INLINE asio::awaitable<void> request::read(std::span<std::byte> into) {
  co_await read(std::span<std::span<std::byte> const>(&into, 1));
}

EDL_INLINE asio::awaitable<void> request::read(std::span<std::span<std::byte> const> into) {
  std::uint64_t room = 0;
  for (auto const& part : into) room += part.size();
  if (room != payload_size())
    throw call_error(status::invalid,
                     fmt::format("method {} takes a payload of {} bytes, but the caller sends {}", method(),
                                 room, payload_size()));
  if (room == 0) co_return;
  if (on_.closed()) throw call_error(on_.closed_status(), on_.closed_text());
  if (on_.payload_owner_ != this || reading_)
    throw call_error(
        status::deadline_exceeded,
        fmt::format("the payload of method {} is gone: it was read before, or waited for too long",
                    method()));
  invariant(on_.payload_left_ == room, "a payload is read from its beginning");
  reading_ = true;
  release const at_end{on_};
  for (auto const& part : into) co_await on_.take(part, on_.payload_left_);
  invariant(on_.payload_left_ == 0, "a payload that was read leaves nothing of its frame");
}

EDL_INLINE asio::awaitable<void> request::reply(std::string_view message, std::span<bytes const> payload) {
  co_await reply(std::as_bytes(std::span(message)), payload);
}

EDL_INLINE asio::awaitable<void> request::reply(std::string_view message, bytes payload) {
  co_await reply(std::as_bytes(std::span(message)), std::span(&payload, 1));
}

EDL_INLINE asio::awaitable<void> request::reply(bytes message, std::span<bytes const> payload) {
  if (replied_) throw error(fmt::format("method {} already has a reply", method()));
  wire::frame_header h{.kind = wire::frame_kind::response,
                       .call = header_.call,
                       .message_size = std::uint32_t(message.size())};
  for (auto const& part : payload) h.payload_size += part.size();
  if (message.size() > wire::frame_limits{}.message)
    throw error(fmt::format("the reply to method {} has a message of {} bytes, a frame takes at most {}",
                            method(), message.size(), wire::frame_limits{}.message));
  replied_ = true;
  // The part of the payload that the handler did not read no longer blocks the connection.
  if (on_.payload_owner_ == this && !reading_) {
    on_.payload_owner_ = nullptr;
    on_.payload_taken_.notify();
  }
  event changed(on_.on_);
  outbound frame(h, message, payload);
  frame.changed = &changed;
  invariant(frame.size == wire::frame_header_size + message.size() + frame.padding + h.payload_size,
            "a frame is as long as its pieces");
  on_.enqueue(frame);
  // The frame must leave whole even if the caller gives up meanwhile, so cancellation does not end this wait;
  // closing the connection does.
  while (!frame.finished) co_await changed.wait_through();
  if (frame.failed) throw call_error(on_.closed_status(), on_.closed_text());
}

}  // namespace edl::net
