// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "edl/core/span.hpp"

namespace edl::wire {

/// What a frame is. The values are the protocol's.
enum class frame_kind : std::uint8_t {
  request = 1,
  response = 2,
  failure = 3,  ///< a call ended without a response; the message is a `Failure`
  cancel = 4,   ///< whoever called has given up
  hello = 5,    ///< the first three frames of a connection, see docs/protocol.md
  challenge = 6,
  proof = 7,
};

/// What stands in front of every frame. On the wire: 32 bytes, little endian, laid out as docs/protocol.md
/// says.
struct frame_header {
  frame_kind kind = frame_kind::request;
  std::uint16_t method = 0;        ///< requests only
  std::uint64_t call = 0;          ///< chosen by the caller, unique among its calls of the connection
  std::uint32_t deadline_ms = 0;   ///< what is left of the caller's timeout; 0: it waits for ever
  std::uint32_t message_size = 0;  ///< bytes of the protobuf message
  std::uint64_t payload_size = 0;  ///< raw bytes after message and padding
  friend bool operator==(frame_header const&, frame_header const&) = default;
};

/// What a receiver is ready to take.
struct frame_limits {
  std::uint32_t message = 16u << 20;
  std::uint64_t payload = std::uint64_t{16} << 30;
};

inline constexpr std::size_t frame_header_size = 32, frame_alignment = 64;
inline constexpr std::uint8_t protocol_version = 2;

/// Zero bytes between message and payload: the payload starts at a multiple of 64 from the frame's start.
/// None without a payload.
constexpr std::size_t frame_padding(frame_header const& h) {
  return h.payload_size == 0
             ? 0
             : (frame_alignment - (frame_header_size + h.message_size) % frame_alignment) % frame_alignment;
}

std::array<std::byte, frame_header_size> encode(frame_header const& h);

/// Throws `edl::error` that names the field and its value when this is no header of this protocol or asks for
/// more than the limits allow. Reads exactly the 32 bytes it is given.
frame_header decode(std::span<std::byte const, frame_header_size> in, frame_limits const& limits = {});

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/frame.ipp"
#endif
