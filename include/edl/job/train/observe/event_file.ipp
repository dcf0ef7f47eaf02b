// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>

#include "edl/compute/data/format/compression.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/observe/event_file.hpp"

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

// A field's key is its number and its wire type: 8 bytes, a varint, a length and bytes, or 4 bytes.
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

/// A summary of encoded values.
inline std::string summary_event(double time, std::uint64_t step, std::string const& values) {
  return framed(double_field(1, time) + varint_field(2, step) + bytes_field(5, values));
}
inline std::string summary_value(std::string_view tag, unsigned kind, std::string const& encoded) {
  return bytes_field(1, bytes_field(1, tag) + bytes_field(kind, encoded));
}

/// The upper limits of the buckets, ascending; a bucket excludes its own limit.
inline std::vector<double> const& bucket_limits() {
  static std::vector<double> const all = [] {
    std::vector<double> limits;
    for (double v = 1e-12; v < 1e20; v *= 1.1) limits.push_back(v);
    limits.push_back(std::numeric_limits<double>::max());
    std::size_t const n = limits.size();
    limits.push_back(0);
    for (std::size_t i = 0; i < n; ++i) limits.push_back(-limits[i]);
    std::ranges::sort(limits);
    return limits;
  }();
  return all;
}

/// For each sign, exponent and leading bits of the mantissa, a bucket at most two before that of such floats.
/// A search for each of a million weights would take 60 ms.
inline std::vector<std::uint16_t> const& first_buckets() {
  static std::vector<std::uint16_t> const all = [] {
    std::vector<std::uint16_t> first(1u << 13);
    auto const& limits = bucket_limits();
    for (std::uint32_t head = 0; head < first.size(); ++head) {
      std::uint32_t const tail = head >> 12 ? 0x7ffffu : 0;  // of the smallest such value
      double const least = std::bit_cast<float>(head << 19 | tail);
      if (std::isfinite(least))
        first[head] = std::uint16_t(std::ranges::upper_bound(limits, least) - limits.begin());
    }
    return first;
  }();
  return all;
}

inline std::string histogram(view<float> values) {
  auto const& limits = bucket_limits();
  auto const& first = first_buckets();
  std::vector<double> counts(limits.size());
  double least = std::numeric_limits<double>::max(), most = -least, number = 0, sum = 0, squares = 0;
  for (float const value : values) {
    if (!std::isfinite(value)) continue;
    double const v = value;
    std::size_t bucket = first[std::bit_cast<std::uint32_t>(value) >> 19];
    while (limits[bucket] <= v) ++bucket;
    counts[bucket] += 1;
    least = std::min(least, v), most = std::max(most, v);
    number += 1, sum += v, squares += v * v;
  }
  std::string ends, filled;
  for (std::size_t i = 0; i < limits.size();) {
    double end = limits[i];
    double const count = counts[i++];
    // Merge consecutive empty buckets.
    for (; count == 0 && i < limits.size() && counts[i] == 0; ++i) end = limits[i];
    ends += little_endian(std::bit_cast<std::uint64_t>(end));
    filled += little_endian(std::bit_cast<std::uint64_t>(count));
  }
  return double_field(1, least) + double_field(2, most) + double_field(3, number) + double_field(4, sum) +
         double_field(5, squares) + bytes_field(6, ends) + bytes_field(7, filled);
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
  return summary_event(seconds_since_1970, step, summary);
}

EDL_INLINE std::string event_of_histograms(double seconds_since_1970, std::uint64_t step,
                                           std::vector<std::pair<std::string, view<float>>> const& values) {
  using namespace detail::events;
  std::string summary;
  for (auto const& [tag, of] : values) summary += summary_value(tag, 5, histogram(of));
  return summary_event(seconds_since_1970, step, summary);
}

EDL_INLINE std::string event_of_pictures(double seconds_since_1970, std::uint64_t step,
                                         std::vector<std::pair<std::string, event_picture>> const& pictures) {
  using namespace detail::events;
  std::string summary;
  for (auto const& [tag, p] : pictures)
    summary +=
        summary_value(tag, 4,
                      varint_field(1, std::uint64_t(p.height)) + varint_field(2, std::uint64_t(p.width)) +
                          varint_field(3, std::uint64_t(p.channels)) + bytes_field(4, p.png));
  return summary_event(seconds_since_1970, step, summary);
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
