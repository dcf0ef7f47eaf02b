// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>

#include "edl/cli/status_line.hpp"
#include "edl/core/inline.hpp"

namespace edl::cli {
namespace detail {

// Bytes that a log replaces by blanks, so that none of its lines can be mistaken for a status line.
inline constexpr char status_mark = '\x1e', part_mark = '\x1f';
inline constexpr std::size_t most_parts = 64;

inline std::string ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

inline std::string joined(status_line const& parts) {
  std::string text;
  for (status_part const& p : parts) text += (text.empty() ? "" : "  ") + ascii(p.text);
  return text;
}

}  // namespace detail

EDL_INLINE std::string fit(status_line const& parts, std::size_t columns) {
  status_line left = parts;
  std::string text = detail::joined(left);
  while (text.size() > columns && left.size() > 1) {
    // Among parts of the same rank the last one goes first.
    auto const worst = std::ranges::max_element(left.rbegin(), left.rend(),
                                                [](auto const& a, auto const& b) { return a.rank < b.rank; });
    left.erase(std::next(worst).base());
    text = detail::joined(left);
  }
  return text.substr(0, columns);
}

EDL_INLINE std::string encode(status_line const& parts) {
  std::string line(1, detail::status_mark);
  for (status_part const& p : parts)
    line += std::to_string(p.rank) + ' ' + detail::ascii(p.text) + detail::part_mark;
  return line + '\n';
}

EDL_INLINE std::optional<status_line> decode(std::string_view line) {
  if (line.empty() || line.front() != detail::status_mark) return std::nullopt;
  status_line parts;
  for (std::size_t at = 1; at < line.size() && parts.size() < detail::most_parts;) {
    auto const end = std::min(line.find(detail::part_mark, at), line.size());
    std::string_view const part = line.substr(at, end - at);
    status_part p;
    auto const [after, bad] = std::from_chars(part.data(), part.data() + part.size(), p.rank);
    if (bad != std::errc{} || after == part.data() + part.size() || *after != ' ') return std::nullopt;
    p.text = part.substr(std::size_t(after - part.data()) + 1);
    parts.push_back(std::move(p));
    at = end + 1;
  }
  return parts;
}

}  // namespace edl::cli
