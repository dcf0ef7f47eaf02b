// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "edl/core/span.hpp"

namespace edl::wire {

/// The kind of a frame. The values are the protocol's.
enum class frame_kind : std::uint8_t {
  request = 1,
  response = 2,
  failure = 3,  ///< a call ended without a response; the message is a `Failure`
  cancel = 4,   ///< the caller has given up
  hello = 5,    ///< the first three frames of a connection, see docs/protocol.md
  challenge = 6,
  proof = 7,
};

/// The header of every frame. On the wire: 32 bytes, little-endian, in the layout of docs/protocol.md.
struct frame_header {
  frame_kind kind = frame_kind::request;
  std::uint16_t method = 0;        ///< requests only
  std::uint64_t call = 0;          ///< chosen by the caller, unique among its calls of the connection
  std::uint32_t deadline_ms = 0;   ///< rest of the caller's timeout; 0: it waits for ever
  std::uint32_t message_size = 0;  ///< bytes of the protobuf message
  std::uint64_t payload_size = 0;  ///< raw bytes after message and padding
  friend bool operator==(frame_header const&, frame_header const&) = default;
};

/// The limits of a receiver.
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

/// Throws `edl::error`, which names the field and its value, if this is not a header of this protocol or
/// exceeds the limits. Reads exactly the given 32 bytes.
frame_header decode(std::span<std::byte const, frame_header_size> in, frame_limits const& limits = {});

}  // namespace edl::wire

#ifdef EDL_HEADER_ONLY
#include "edl/base/wire/frame.ipp"
#endif
