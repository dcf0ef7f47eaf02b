// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "edl/compute/features/date.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::features {
namespace detail {

/// Takes exactly so many digits from the front.
inline std::optional<int> digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int n = 0;
  for (char const c : text.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    n = 10 * n + (c - '0');
  }
  text.remove_prefix(count);
  return n;
}

inline bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// HH:MM[:SS[.fraction]][zone], all of the text; the second of the day.
inline std::optional<int> second_of_day(std::string_view text) {
  auto const hour = digits(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  auto const minute = digits(text, 2);
  std::optional<int> second = 0;
  if (take(text, ':')) {
    second = digits(text, 2);
    if (take(text, '.')) {
      if (!digits(text, 1)) return std::nullopt;
      while (digits(text, 1)) {
      }
    }
  }
  if (!minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  if (take(text, '+') || take(text, '-')) {
    auto const zone = digits(text, 2);
    take(text, ':');
    auto const rest = digits(text, 2);
    if (!zone || !rest || *zone > 23 || *rest > 59) return std::nullopt;
  } else {
    take(text, 'Z');
  }
  if (!text.empty()) return std::nullopt;
  return *hour * 3600 + *minute * 60 + std::min(*second, 59);  // a leap second is the one before it
}

inline std::chrono::sys_days day_of(int year, int month, int day) {
  return std::chrono::year(year) / month / day;
}

}  // namespace detail

EDL_INLINE std::optional<date> date::from(std::string_view text) {
  text = trimmed(text);
  std::string_view rest = text;
  std::optional<int> year, month, day;
  if (text.size() > 2 && text[2] == '.') {
    day = detail::digits(rest, 2);
    detail::take(rest, '.');
    month = detail::digits(rest, 2);
    if (!detail::take(rest, '.')) return std::nullopt;
    year = detail::digits(rest, 4);
  } else {
    year = detail::digits(rest, 4);
    char const between = rest.starts_with('/') ? '/' : '-';
    if (!detail::take(rest, between)) return std::nullopt;
    month = detail::digits(rest, 2);
    if (!detail::take(rest, between)) return std::nullopt;
    day = detail::digits(rest, 2);
  }
  if (!year || !month || !day) return std::nullopt;
  date d;
  d.year_ = *year, d.month_ = *month, d.day_ = *day;
  if (!(std::chrono::year(*year) / *month / *day).ok()) return std::nullopt;
  if (rest.empty()) return d;
  if (!detail::take(rest, 'T') && !detail::take(rest, ' ')) return std::nullopt;
  auto const second = detail::second_of_day(rest);
  if (!second) return std::nullopt;
  d.second_ = *second;
  return d;
}

EDL_INLINE date::date(std::string_view text) {
  auto const read = from(text);
  if (!read)
    throw data_error(
        fmt::format("'{}' is not a date: expected 2026-11-28 or 28.11.2026, optionally with a time, 15:04:05",
                    printable(text, 64)));
  *this = *read;
}

EDL_INLINE int date::weekday() const {
  return int(std::chrono::weekday(detail::day_of(year_, month_, day_)).iso_encoding()) - 1;
}

EDL_INLINE double date::days() const {
  return double(detail::day_of(year_, month_, day_).time_since_epoch().count()) + second_ / 86400.0;
}

}  // namespace edl::features
