// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>

#include "edl/cli/flag.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::cli {
namespace detail {

inline bool within(flag const& f, std::string const& text) {
  if (auto const n = number_from<std::int64_t>(text))
    return *n >= f.least && (*n < 0 || std::uint64_t(*n) <= f.most);
  auto const large = number_from<std::uint64_t>(text);
  return large && *large <= f.most;
}

inline std::string bounds(flag const& f) {
  bool const open = f.most == std::numeric_limits<std::uint64_t>::max();
  return open ? fmt::format("of at least {}", f.least) : fmt::format("from {} to {}", f.least, f.most);
}

/// The range of a number. The limits of a type are printed with two digits.
inline std::string range(flag const& f) {
  auto const text = [](double bound) {
    return std::abs(bound) < std::numeric_limits<float>::max() ? fmt::format("{}", bound)
                                                               : fmt::format("{:.2g}", bound);
  };
  return fmt::format("from {} to {}", text(f.lowest), text(f.highest));
}

/// The choices allowed beside a number.
inline std::string alternatives(flag const& f) {
  return f.choices.empty() ? std::string() : fmt::format(", or {}", fmt::join(f.choices, ", "));
}

/// "-n, --name, --alias".
inline std::string spelling(flag const& f) {
  std::string all;
  for (std::string const& a : f.aliases) all += a.size() == 1 ? "-" + a + ", " : "";
  all += "--" + f.name;
  for (std::string const& a : f.aliases) all += a.size() > 1 ? ", --" + a : "";
  return all;
}

/// Two columns: the left text once, and the words of the right one wrapped over as many lines as they need.
inline std::string columns(std::string left, std::string const& right) {
  constexpr std::size_t column = 34, width = 110;
  std::string out;
  if (left.size() + 1 >= column) {
    out = left + "\n";
    left.clear();
  }
  std::string line = fmt::format("{:<{}}", left, column);
  auto const flush = [&] { out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; };
  for (std::size_t at = 0; at < right.size();) {
    auto const end = std::min(right.find(' ', at), right.size());
    if (line.size() + end - at > width && line.size() > column) {
      flush();
      line = std::string(column, ' ');
    }
    line += right.substr(at, end - at) + " ";
    at = end + 1;
  }
  flush();
  return out;
}

}  // namespace detail

EDL_INLINE std::string accept(flag const& f, std::string const& value) {
  auto const refuse = [&](std::string const& expected) {
    throw usage_error(fmt::format("--{}={}: expected {}", f.name, value, expected));
  };
  auto const same = [&](std::string const& c) { return lower(c) == lower(value); };
  if (auto const choice = std::ranges::find_if(f.choices, same); choice != f.choices.end()) return *choice;
  if (f.type == flag::value_type::truth) parse_truth(f.name, value);
  if (f.type == flag::value_type::whole && !detail::within(f, value))
    refuse(fmt::format("a whole number {}{}", detail::bounds(f), detail::alternatives(f)));
  auto const n = number_from<double>(value);
  if (f.type == flag::value_type::number && !(n && *n >= f.lowest && *n <= f.highest))
    refuse(fmt::format("a number {}", detail::range(f)));
  if (f.type == flag::value_type::share && !(n && *n > 0 && *n <= 1))
    refuse("a number of more than 0, and at most 1");
  if (f.type == flag::value_type::text && !f.choices.empty())
    refuse(fmt::format("{}", fmt::join(f.choices, ", ")));
  return value;
}

EDL_INLINE bool parse_truth(std::string const& name, std::string const& text) {
  static words const yes{"true", "yes", "t", "y", "1", "on"}, no{"false", "no", "f", "n", "0", "off"};
  std::string const t = lower(text);
  if (std::ranges::find(yes, t) != yes.end()) return true;
  if (std::ranges::find(no, t) != no.end()) return false;
  throw usage_error(fmt::format("--{}={}: expected true or false", name, text));
}

EDL_INLINE words split(std::string const& text, char at) {
  words all;
  for (std::size_t i = 0; i <= text.size();) {
    auto const end = std::min(text.find(at, i), text.size());
    if (auto const part = trimmed(std::string_view(text).substr(i, end - i)); !part.empty())
      all.emplace_back(part);
    i = end + 1;
  }
  return all;
}

EDL_INLINE words list_of(std::string_view name, std::string const& text) {
  words all = split(text, ',');
  auto const refuse = [&](std::string const& why) {
    throw usage_error(fmt::format("--{}={}: {}", name, printable(text), why));
  };
  if (!text.empty() && all.size() != std::size_t(std::ranges::count(text, ',')) + 1)
    refuse("a part of the list is empty");
  for (auto it = all.begin(); it != all.end(); ++it)
    if (std::find(all.begin(), it, *it) != it) refuse(fmt::format("'{}' occurs twice", printable(*it)));
  return all;
}

EDL_INLINE std::string describe(std::vector<flag> const& flags) {
  std::vector<std::string> groups;
  for (flag const& f : flags)
    if (!f.help.empty() && std::ranges::find(groups, f.group) == groups.end()) groups.push_back(f.group);
  std::string out;
  for (std::string const& group : groups) {
    if (!group.empty()) out += (out.empty() ? "" : "\n") + group + ":\n";
    for (flag const& f : flags) {
      if (f.help.empty() || f.group != group) continue;
      std::string help = f.help;
      if (!f.choices.empty()) help += fmt::format(": {}", fmt::join(f.choices, ", "));
      if (!f.fallback.empty()) help += fmt::format(" [{}]", f.fallback);
      out += detail::columns("  " + detail::spelling(f), help);
    }
  }
  return out;
}

}  // namespace edl::cli
