// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <bit>
#include <concepts>

#include "edl/compute/data/format/compression.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/history/event_file.hpp"

namespace edl::train {
namespace detail::events {

template <std::unsigned_integral T>
std::string little_endian(T value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof value; ++i) out += char(value >> 8 * i & 0xff);
  return out;
}

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += char((value & 0x7f) | 0x80);
  return out += char(value);
}

// A field's key: its number, and whether 8 bytes, a varint, so many bytes, or 4 bytes follow.
inline std::string bytes_field(unsigned number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string double_field(unsigned number, double value) {
  return varint(number << 3 | 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
inline std::string float_field(unsigned number, float value) {
  return varint(number << 3 | 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
inline std::string varint_field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}

inline std::string framed(std::string const& message) {
  auto const checksum = [](std::string const& of) {
    return little_endian(data::detail::masked(data::detail::crc32c(of)));
  };
  std::string const length = little_endian(std::uint64_t(message.size()));
  return length + checksum(length) + message + checksum(message);
}

}  // namespace detail::events

EDL_INLINE std::string event_file_version(double seconds_since_1970) {
  using namespace detail::events;
  return framed(double_field(1, seconds_since_1970) + bytes_field(3, "brain.Event:2"));
}

EDL_INLINE std::string event_of_scalars(double seconds_since_1970, std::uint64_t step,
                                        std::vector<std::pair<std::string, double>> const& scalars) {
  using namespace detail::events;
  std::string summary;
  for (auto const& [tag, value] : scalars)
    summary += bytes_field(1, bytes_field(1, tag) + float_field(2, float(value)));
  return framed(double_field(1, seconds_since_1970) + varint_field(2, step) + bytes_field(5, summary));
}

EDL_INLINE std::string event_of_start(double seconds_since_1970, std::uint64_t step) {
  using namespace detail::events;
  constexpr std::uint64_t start = 1;
  return framed(double_field(1, seconds_since_1970) + varint_field(2, step) +
                bytes_field(7, varint_field(1, start)));
}

EDL_INLINE std::string event_file_name(double seconds_since_1970, std::string_view host,
                                       std::uint64_t number) {
  return fmt::format("events.out.tfevents.{:.0f}.{}{}", seconds_since_1970, host,
                     number > 0 ? fmt::format(".{}", number) : "");
}

}  // namespace edl::train
