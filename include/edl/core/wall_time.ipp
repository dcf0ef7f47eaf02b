// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>

#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"

namespace edl {

EDL_INLINE std::optional<double> seconds_of(std::string_view t) {
  constexpr std::string_view form = "dddd-dd-ddTdd:dd:dd";
  if (t.size() < form.size() + 1 || t.back() != 'Z') return std::nullopt;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? t[i] < '0' || t[i] > '9' : t[i] != form[i]) return std::nullopt;
  auto const number = [&](std::size_t at, std::size_t n) {
    int value = 0;
    std::from_chars(t.data() + at, t.data() + at + n, value);
    return value;
  };
  std::chrono::year_month_day const day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(unsigned(number(5, 2))),
                                        std::chrono::day(unsigned(number(8, 2)))};
  int const hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!day.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  double fraction = 0, part = 0.1;
  if (auto rest = t.substr(form.size(), t.size() - form.size() - 1); !rest.empty()) {
    if (rest[0] != '.' || rest.size() < 2 || rest.size() > 10) return std::nullopt;
    for (char const c : rest.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      fraction += part * (c - '0');
      part /= 10;
    }
  }
  auto const days = std::chrono::sys_days(day).time_since_epoch().count();
  return double(days) * 86400 + hour * 3600 + minute * 60 + second + fraction;
}

EDL_INLINE std::string stamp_of(double seconds, bool micro) {
  // Clamps to years of four digits, whatever the clock returns.
  double const bounded = std::isfinite(seconds) ? std::fmin(std::fmax(seconds, 0), 253402300799.0) : 0;
  std::int64_t const micros = std::int64_t(bounded * 1e6);
  // Converts whole seconds, because a time_point of the system clock ends in the year 2262.
  std::tm const at = fmt::gmtime(std::time_t(micros / 1'000'000));
  if (micro) return fmt::format("{:%FT%T}.{:06}Z", at, micros % 1'000'000);
  return fmt::format("{:%FT%T}Z", at);
}

EDL_INLINE double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace edl
