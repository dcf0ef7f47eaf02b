// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "edl/compute/data/format/parquet_value.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::data::detail {

/// The digits of a number in two's complement, the big end first, with '-' before a negative one.
inline std::string digits_of(std::string_view big_endian) {
  std::string bytes(big_endian), digits;
  bool const negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  if (negative) {
    for (char& c : bytes) c = char(~c);
    for (auto c = bytes.rbegin(); c != bytes.rend() && ++*c == 0; ++c) {
    }
  }
  do {  // divides by ten
    unsigned rest = 0;
    bool left = false;
    for (char& c : bytes) {
      unsigned const now = rest << 8 | static_cast<unsigned char>(c);
      c = char(now / 10), rest = now % 10;
      left = left || c != 0;
    }
    digits += char('0' + rest);
    if (!left) break;
  } while (true);
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

inline void put_decimal(std::string digits, int behind, std::string& into) {
  bool const negative = digits.starts_with('-');
  if (negative) digits.erase(0, 1);
  if (behind > 0) {
    if (digits.size() <= std::size_t(behind)) digits.insert(0, std::size_t(behind) + 1 - digits.size(), '0');
    digits.insert(digits.size() - std::size_t(behind), ".");
  }
  into += negative ? "-" + digits : digits;
}

/// HH:MM:SS, with a fraction of the seconds where there is one; `digits` behind the point are counted.
inline void put_time(std::int64_t time, int digits, std::string& into) {
  std::int64_t whole = 1;
  for (int i = 0; i < digits; ++i) whole *= 10;
  std::int64_t const seconds = time / whole;
  fmt::format_to(std::back_inserter(into), "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
  if (time % whole == 0) return;
  into += fmt::format(".{:0{}}", time % whole, digits);
  into.erase(into.find_last_not_of('0') + 1);
}

/// A day since 1970-01-01 of the Gregorian calendar, in any year
/// (howardhinnant.github.io/date_algorithms.html, civil_from_days).
inline void put_day(std::int64_t day, std::string& into) {
  std::int64_t const z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
  std::int64_t const year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  std::int64_t const of_year = of_era - (365 * year + year / 4 - year / 100),
                     shifted = (5 * of_year + 2) / 153;
  std::int64_t const month = shifted < 10 ? shifted + 3 : shifted - 9;
  fmt::format_to(std::back_inserter(into), "{:04}-{:02}-{:02}", year + era * 400 + (month <= 2 ? 1 : 0),
                 month, of_year - (153 * shifted + 2) / 5 + 1);
}

inline double from_half(std::string_view two) {
  std::uint16_t h;
  std::memcpy(&h, two.data(), sizeof h);
  int const exponent = h >> 10 & 31, fraction = h & 1023;
  double const size = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                                  : std::numeric_limits<double>::infinity())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return h >> 15 ? -size : size;
}

inline bool is_stored_whole(parquet_column const& c) {
  return c.type == parquet_type::boolean || c.type == parquet_type::int32 || c.type == parquet_type::int64;
}

EDL_INLINE example::kind kind_of(parquet_column const& column) {
  using enum parquet_meaning;
  switch (column.meaning) {
    case decimal:
      return column.digits == 0 ? example::kind::integers : example::kind::floats;
    case float16:
      return example::kind::floats;
    case as_stored:
    case is_unsigned:
      if (is_stored_whole(column)) return example::kind::integers;
      return column.type == parquet_type::float32 || column.type == parquet_type::float64
                 ? example::kind::floats
                 : example::kind::strings;
    default:
      return example::kind::strings;
  }
}

EDL_INLINE bool may_be_too_large(parquet_column const& column) {
  if (column.meaning == parquet_meaning::is_unsigned) return column.type == parquet_type::int64;
  return column.meaning == parquet_meaning::decimal && column.digits == 0 && !is_stored_whole(column);
}

EDL_INLINE std::optional<std::int64_t> integer_at(parquet_column const& column, parquet_values const& values,
                                                  std::size_t i) {
  if (!is_stored_whole(column)) {
    auto bytes = values.bytes_at(i);
    auto const sign = [](char c) { return (c & 0x80) != 0 ? '\xff' : '\0'; };
    while (bytes.size() > 8) {
      if (bytes[0] != sign(bytes[1])) return std::nullopt;
      bytes.remove_prefix(1);
    }
    std::uint64_t n = bytes.empty() || sign(bytes[0]) == 0 ? 0 : ~std::uint64_t{0};
    for (char const c : bytes) n = n << 8 | static_cast<unsigned char>(c);
    return std::int64_t(n);
  }
  std::int64_t const n = values.integers[i];
  if (column.meaning != parquet_meaning::is_unsigned) return n;
  if (column.type == parquet_type::int32) return std::int64_t(std::uint32_t(n));
  return n >= 0 ? std::optional(n) : std::nullopt;
}

EDL_INLINE double number_at(parquet_column const& column, parquet_values const& values, std::size_t i) {
  if (column.meaning == parquet_meaning::float16) return from_half(values.bytes_at(i));
  if (!values.floats.empty()) return values.floats[i];
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  if (column.digits <= 22)
    if (auto const n = integer_at(column, values, i); n && *n <= exact && *n >= -exact) {
      double scale = 1;  // a power of ten that is exact, so that the quotient is rounded once
      for (int d = 0; d < column.digits; ++d) scale *= 10;
      return double(*n) / scale;
    }
  std::string text;
  text_at(column, values, i, text);
  return number_from<double>(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

EDL_INLINE std::string_view text_at(parquet_column const& column, parquet_values const& values, std::size_t i,
                                    std::string& scratch) {
  scratch.clear();
  auto const put = std::back_inserter(scratch);
  bool const whole = is_stored_whole(column);
  std::int64_t const n = whole ? values.integers[i] : 0;
  switch (column.meaning) {
    case parquet_meaning::as_stored:
      if (whole)
        fmt::format_to(put, "{}", n);
      else if (column.type == parquet_type::float32)
        fmt::format_to(put, "{}", float(values.floats[i]));
      else if (column.type == parquet_type::float64)
        fmt::format_to(put, "{}", values.floats[i]);
      else
        return values.bytes_at(i);
      break;
    case parquet_meaning::is_unsigned:
      if (column.type == parquet_type::int32)
        fmt::format_to(put, "{}", std::uint32_t(n));
      else
        fmt::format_to(put, "{}", std::uint64_t(n));
      break;
    case parquet_meaning::decimal:
      put_decimal(whole ? std::to_string(n) : digits_of(values.bytes_at(i)), column.digits, scratch);
      break;
    case parquet_meaning::date:
      put_day(n, scratch);
      break;
    case parquet_meaning::time:
      put_time(n, column.digits, scratch);
      break;
    case parquet_meaning::timestamp: {
      std::int64_t day = 0, time = 0;
      if (whole) {
        std::int64_t per_day = 86'400;
        for (int d = 0; d < column.digits; ++d) per_day *= 10;
        day = n / per_day - (n % per_day < 0 ? 1 : 0), time = n % per_day + (n % per_day < 0 ? per_day : 0);
      } else {  // nanoseconds of the day, and the day by Julius
        auto const stored = values.bytes_at(i);
        std::uint32_t julian;
        std::memcpy(&time, stored.data(), sizeof time);
        std::memcpy(&julian, stored.data() + sizeof time, sizeof julian);
        day = std::int64_t{julian} - 2'440'588;
      }
      put_day(day, scratch);
      scratch += ' ';
      put_time(time, column.digits, scratch);
      break;
    }
    case parquet_meaning::float16:
      fmt::format_to(put, "{}", float(from_half(values.bytes_at(i))));
      break;
    case parquet_meaning::uuid: {
      auto const bytes = values.bytes_at(i);
      for (std::size_t b = 0; b < bytes.size(); ++b)
        fmt::format_to(put, "{}{:02x}", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "",
                       static_cast<unsigned char>(bytes[b]));
      break;
    }
  }
  if (column.utc && (column.meaning == parquet_meaning::timestamp || column.meaning == parquet_meaning::time))
    scratch += 'Z';
  return scratch;
}

}  // namespace edl::data::detail
