// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"

namespace edl {
namespace detail::amounts {

__extension__ using wide = unsigned __int128;

inline constexpr std::uint64_t most_quantity = std::numeric_limits<std::int64_t>::max();

[[noreturn]] inline void no_quantity(std::string const& amount, char const* why) {
  throw error(fmt::format("'{}' {}", printable(amount, 64), why));
}

inline wide times(wide a, wide b, std::string const& amount) {
  wide product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    no_quantity(amount, "is more than any machine has: at most 2^63 - 1");
  return product;
}

inline wide power(std::uint32_t base, std::uint32_t exponent, std::string const& amount) {
  wide p = 1;
  while (exponent--) p = times(p, base, amount);
  return p;
}

/// The amount in units of 1 / `parts`, rounded up.
inline std::uint64_t count(std::string const& amount, std::uint32_t parts) {
  constexpr char const* expected =
      "is not an amount: expected a number and a unit, as 2, 250m, 0.5, 512Mi or 4Gi";
  std::string_view rest = amount;
  wide value = 0;
  std::int32_t decimals = 0;
  bool point = false, digits = false;
  for (; !rest.empty() && ((rest[0] >= '0' && rest[0] <= '9') || (rest[0] == '.' && !point));
       rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      point = true;
      continue;
    }
    digits = true;
    value = times(value, 10, amount) + wide(rest[0] - '0');
    decimals += point;
  }
  if (!digits || decimals > 30) no_quantity(amount, expected);

  std::int32_t exponent = -decimals;
  wide binary = 1;
  if (auto const at = std::string_view("KMGTPE").find(rest.empty() ? '\0' : rest[0]);
      rest.size() == 2 && rest[1] == 'i' && at != std::string_view::npos) {
    binary = wide{1} << (10 * (at + 1));
  } else if (rest.size() == 1) {
    auto const unit = std::string_view("num.kMGTPE").find(rest[0]);
    if (unit == std::string_view::npos || rest[0] == '.') no_quantity(amount, expected);
    exponent += 3 * (std::int32_t(unit) - 3);
  } else if (!rest.empty()) {
    bool const less = rest.size() > 2 && rest[1] == '-';
    std::string_view const number = rest.substr(less || (rest.size() > 2 && rest[1] == '+') ? 2 : 1);
    if ((rest[0] != 'e' && rest[0] != 'E') || number.empty() || number.size() > 2 ||
        !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
      no_quantity(amount, expected);
    std::int32_t size = 0;
    for (char const c : number) size = 10 * size + (c - '0');
    exponent += less ? -size : size;
  }
  if (!value) return 0;

  value = times(times(value, binary, amount), parts, amount);
  if (exponent > 0) value = times(value, power(10, std::uint32_t(exponent), amount), amount);
  for (; exponent < 0; ++exponent) value = value / 10 + (value % 10 != 0);
  if (value > wide{most_quantity} * parts)
    no_quantity(amount, "is more than any machine has: at most 2^63 - 1");
  return std::uint64_t(std::min<wide>(value, std::numeric_limits<std::uint64_t>::max()));
}

}  // namespace detail::amounts

EDL_INLINE std::uint64_t bytes_of(std::string const& amount) { return detail::amounts::count(amount, 1); }

EDL_INLINE std::uint64_t thousandths_of(std::string const& amount) {
  return detail::amounts::count(amount, 1000);
}

EDL_INLINE void check_amount(std::string const& resource, std::string const& amount) {
  thousandths_of(amount);
  std::uint64_t const bytes = bytes_of(amount);
  if ((resource == "memory" || resource == "ephemeral-storage") && bytes > 0 && bytes < (1u << 20))
    throw error(
        fmt::format("'{}' is {}, too little for a pod: units are Mi and Gi, or M and G, and m is a "
                    "thousandth",
                    printable(amount, 64), counted(bytes, "byte")));
}

EDL_INLINE std::string to_quantity(std::uint64_t bytes) {
  std::size_t unit = 0;
  for (; bytes && bytes % 1024 == 0 && unit < 6; bytes /= 1024) ++unit;
  return fmt::format("{}{}{}", bytes, unit ? std::string_view(" KMGTPE").substr(unit, 1) : "",
                     unit ? "i" : "");
}

EDL_INLINE std::string grown_quantity(std::string const& amount, std::uint32_t times, std::uint64_t most) {
  std::uint64_t const now = bytes_of(amount);
  if (now >= most) return amount;
  std::uint64_t more = 0;
  if (__builtin_mul_overflow(now, std::uint64_t{times}, &more)) more = most;
  return more == now ? amount : to_quantity(std::min(more, most));
}

}  // namespace edl
