// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>

#include "edl/base/wire/frame.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::wire {

namespace detail {

inline constexpr std::uint32_t frame_magic = 0x314C4445;  // "EDL1" as bytes

template <std::unsigned_integral T>
void put_little(std::byte*& at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *at++ = std::byte(value >> (8 * i));
}

template <std::unsigned_integral T>
T get_little(std::byte const*& at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = T(value | T(T(*at++) << (8 * i)));
  return value;
}

}  // namespace detail

EDL_INLINE std::array<std::byte, frame_header_size> encode(frame_header const& h) {
  std::array<std::byte, frame_header_size> out;
  std::byte* at = out.data();
  detail::put_little(at, detail::frame_magic);
  detail::put_little(at, protocol_version);
  detail::put_little(at, std::uint8_t(h.kind));
  detail::put_little(at, h.method);
  detail::put_little(at, h.call);
  detail::put_little(at, h.deadline_ms);
  detail::put_little(at, h.message_size);
  detail::put_little(at, h.payload_size);
  return out;
}

EDL_INLINE frame_header decode(std::span<std::byte const, frame_header_size> in, frame_limits const& limits) {
  std::byte const* at = in.data();
  auto const magic = detail::get_little<std::uint32_t>(at);
  if (magic != detail::frame_magic)
    throw error(fmt::format("a frame begins with {:08x} instead of {:08x}: the peer speaks another protocol",
                            magic, detail::frame_magic));
  auto const version = detail::get_little<std::uint8_t>(at);
  if (version != protocol_version)
    throw error(fmt::format(
        "a frame of protocol version {}, but this process speaks {}: run one release in all of a job",
        version, protocol_version));
  auto const kind = detail::get_little<std::uint8_t>(at);
  frame_header h;
  h.kind = frame_kind(kind);
  h.method = detail::get_little<std::uint16_t>(at);
  h.call = detail::get_little<std::uint64_t>(at);
  h.deadline_ms = detail::get_little<std::uint32_t>(at);
  h.message_size = detail::get_little<std::uint32_t>(at);
  h.payload_size = detail::get_little<std::uint64_t>(at);
  if (kind < std::uint8_t(frame_kind::request) || kind > std::uint8_t(frame_kind::proof))
    throw error(fmt::format("a frame of the unknown kind {}", kind));
  if (h.message_size > limits.message)
    throw error(fmt::format("a frame with a message of {} bytes, at most {} are allowed", h.message_size,
                            limits.message));
  if (h.payload_size > limits.payload)
    throw error(fmt::format("a frame with a payload of {} bytes, at most {} are allowed", h.payload_size,
                            limits.payload));
  if (h.payload_size != 0 && h.kind != frame_kind::request && h.kind != frame_kind::response)
    throw error(fmt::format("a frame of kind {} with a payload of {} bytes, but that kind has none", kind,
                            h.payload_size));
  if (h.message_size != 0 && h.kind == frame_kind::cancel)
    throw error(
        fmt::format("a cancel frame with a message of {} bytes, but that kind has none", h.message_size));
  return h;
}

}  // namespace edl::wire
