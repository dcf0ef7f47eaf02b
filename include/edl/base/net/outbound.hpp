// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "edl/base/net/event.hpp"
#include "edl/base/wire/frame.hpp"
#include "edl/core/span.hpp"

namespace edl::net {

/// A frame to be sent: its own header, with message and payload in the sender's memory.
struct outbound {
  outbound(wire::frame_header const& h, bytes text, std::span<bytes const> payload);
  outbound(outbound const&) = delete;
  outbound& operator=(outbound const&) = delete;

  std::array<std::byte, wire::frame_header_size> head;
  bytes message;
  std::size_t padding;
  std::span<bytes const> parts;
  std::string text;  // the message, when the frame belongs to the queue

  std::uint64_t size = 0, done = 0;  // bytes of the whole frame, and sent
  std::size_t part = 0, offset = 0;  // first piece that is not sent, and what is sent of it
  std::unique_ptr<outbound> self;    // if it belongs to the queue
  bool finished = false, failed = false;
  event* changed = nullptr;  // notified when it is finished
  outbound* next = nullptr;
};

/// Frames in sending order; gathers several into one write.
class outbound_queue {
 public:
  static constexpr std::size_t most_buffers = 64, enough_bytes = 4u << 20;

  outbound_queue() = default;
  outbound_queue(outbound_queue const&) = delete;
  outbound_queue& operator=(outbound_queue const&) = delete;

  bool empty() const { return first_ == nullptr; }
  outbound* front() const { return first_; }
  void push(outbound& frame);
  void pop();
  bool remove(outbound& frame);  // false when it is not in the queue

  /// The next bytes to send, of as many frames as fit in one write.
  std::span<asio::const_buffer const> gather();

  /// Records that the first `bytes` of the queue were sent, up to the first frame's end; returns the rest.
  std::size_t advance(std::size_t bytes);

 private:
  std::array<asio::const_buffer, most_buffers> buffers_;
  outbound *first_ = nullptr, *last_ = nullptr;
};

}  // namespace edl::net

#ifdef EDL_HEADER_ONLY
#include "edl/base/net/outbound.ipp"
#endif
