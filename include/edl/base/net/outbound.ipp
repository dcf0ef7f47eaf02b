// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/base/net/outbound.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::net {

namespace detail {

inline constexpr std::array<std::byte, wire::frame_alignment> zeros{};

// A frame consists of its header, its message, its padding and the parts of its payload, in this order.
EDL_INLINE bytes outbound_piece(outbound const& f, std::size_t index) {
  switch (index) {
    case 0:
      return f.head;
    case 1:
      return f.message;
    case 2:
      return bytes(zeros).first(f.padding);
    default:
      return f.parts[index - 3];
  }
}

}  // namespace detail

EDL_INLINE outbound::outbound(wire::frame_header const& h, bytes content, std::span<bytes const> payload)
    : head(wire::encode(h)),
      message(content),
      padding(wire::frame_padding(h)),
      parts(payload),
      size(wire::frame_header_size + h.message_size + wire::frame_padding(h) + h.payload_size) {}

EDL_INLINE void outbound_queue::push(outbound& frame) {
  invariant(!frame.next && last_ != &frame, "a frame is queued once");
  (last_ ? last_->next : first_) = &frame;
  last_ = &frame;
  invariant(first_ && last_, "a queue with a frame has both ends");
}

EDL_INLINE void outbound_queue::pop() {
  invariant(first_, "only a frame that is queued leaves the queue");
  first_ = first_->next;
  if (!first_) last_ = nullptr;
}

EDL_INLINE bool outbound_queue::remove(outbound& frame) {
  outbound* before = nullptr;
  for (outbound* f = first_; f; before = f, f = f->next) {
    if (f != &frame) continue;
    invariant(f->done == 0, "a frame that is half sent stays in the queue");
    (before ? before->next : first_) = f->next;
    if (last_ == f) last_ = before;
    return true;
  }
  return false;
}

EDL_INLINE std::span<asio::const_buffer const> outbound_queue::gather() {
  std::size_t count = 0, total = 0;
  for (outbound const* f = first_; f; f = f->next) {
    std::size_t skip = f->offset;
    for (std::size_t i = f->part; i < 3 + f->parts.size(); ++i, skip = 0) {
      bytes const piece = detail::outbound_piece(*f, i).subspan(skip);
      if (piece.empty()) continue;
      buffers_[count++] = {piece.data(), piece.size()};
      total += piece.size();
      if (count == most_buffers || total >= enough_bytes) return {buffers_.data(), count};
    }
  }
  return {buffers_.data(), count};
}

EDL_INLINE std::size_t outbound_queue::advance(std::size_t sent) {
  invariant(first_, "bytes are sent of a frame that is queued");
  outbound& f = *first_;
  while (sent > 0 && f.done < f.size) {
    invariant(f.part < 3 + f.parts.size(), "a frame's pieces are as long as its header gives");
    std::size_t const left = detail::outbound_piece(f, f.part).size() - f.offset,
                      step = left < sent ? left : sent;
    f.offset += step;
    f.done += step;
    sent -= step;
    if (step == left) {
      ++f.part;
      f.offset = 0;
    }
  }
  invariant(f.done <= f.size, "no more of a frame is sent than it has");
  return sent;
}

}  // namespace edl::net
