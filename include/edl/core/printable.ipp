// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl {

namespace detail {

/// The character that begins at `i`: its code and its length in bytes; length 0 if it is not valid UTF-8.
inline std::pair<std::uint32_t, std::size_t> character_at(std::string_view text, std::size_t i) {
  auto const at = [text](std::size_t j) {
    return j < text.size() ? static_cast<unsigned char>(text[j]) : 0u;
  };
  static constexpr std::array<std::uint32_t, 4> least{0, 0x80, 0x800, 0x10000};
  std::uint32_t code = at(i);
  std::size_t const more = code < 0x80       ? 0
                           : code >> 5 == 6  ? 1
                           : code >> 4 == 14 ? 2
                           : code >> 3 == 30 ? 3
                                             : 4;
  bool good = more < 4;
  if (more > 0 && good) code &= 0x3fu >> more;
  for (std::size_t j = 1; good && j <= more; ++j) {
    good = at(i + j) >> 6 == 2;
    code = code << 6 | (at(i + j) & 0x3f);
  }
  if (good) good = code >= least[more] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return {code, good ? more + 1 : 0};
}

}  // namespace detail

EDL_INLINE std::string shortened(std::string_view text, std::size_t most) {
  std::size_t end = std::min(most, text.size());
  auto const continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; };
  for (int i = 0; i < 3 && end > 0 && end < text.size() && continues(); ++i) --end;
  return std::string(text.substr(0, end));
}

EDL_INLINE bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t const size = detail::character_at(text, i).second;
    if (size == 0) return false;
    i += size;
  }
  return true;
}

EDL_INLINE std::string printable(std::string_view given, std::size_t most) {
  std::string const text = shortened(given, most);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    auto const [code, size] = detail::character_at(text, i);
    // Codes from 80 to 9f control terminals just as those below 20 do.
    bool const control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (size == 0)
      out += '?';
    else if (control)
      out += ' ';
    else
      out.append(text, i, size);
    i += std::max<std::size_t>(size, 1);
  }
  return out;
}

EDL_INLINE std::string shell_line(std::vector<std::string> const& words) {
  auto const simple = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80 ||
           std::string_view("_-./,:=+@%").find(char(c)) != std::string_view::npos;
  };
  std::string line;
  for (std::string const& w : words) {
    if (!line.empty()) line += ' ';
    bool const as_it_is = printable(w, w.size()) == w;
    bool const plain = as_it_is && !w.empty() && std::ranges::all_of(w, simple);
    if (!plain) line += as_it_is ? "'" : "$'";
    for (char const c : w)
      if (as_it_is)
        line += c == '\'' ? "'\\''" : std::string(1, c);
      else if (c >= ' ' && c <= '~')
        line += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
      else
        line += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    if (!plain) line += '\'';
  }
  return line;
}

}  // namespace edl
