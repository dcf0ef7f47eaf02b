// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "edl/compute/data/format/table.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data {

EDL_INLINE std::string detail::spelled_note(std::string const& path, std::uint64_t line,
                                            std::string_view number, std::string_view column) {
  return fmt::format(
      "{}:{}: {} does not fit 64 bits with a sign, and makes column '{}' of whole numbers a text; "
      "where floats are meant, write numbers with a point",
      path, line, edl::printable(number, 64), edl::printable(column, 64));
}

namespace detail {

/// What a name looks like, about: letters without their marks and case, blanks left out.
inline std::string looks_of(std::string_view name) {
  // U+00C0 to U+017F without marks, a letter each.
  constexpr std::string_view bare =
      "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo/ouuuuyty"
      "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllll"
      "nnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    auto const byte = static_cast<unsigned char>(name[i]);
    std::size_t const length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    std::string_view const one = name.substr(i, length);
    i += length;
    if (length == 1) {
      if (byte > 0x20) out += byte >= 'A' && byte <= 'Z' ? char(byte + 32) : char(byte);
    } else if (length == 2 && one.size() == 2) {
      unsigned const code = (byte & 0x1Fu) << 6 | (static_cast<unsigned char>(one[1]) & 0x3Fu);
      bool const mark = code >= 0x300 && code < 0x370, blank = code == 0xA0 || code == 0xAD;
      if (code >= 0xC0 && code < 0xC0 + bare.size())
        out += bare[code - 0xC0];
      else if (!mark && !blank)
        out += one;
    } else if (one != "\xE2\x80\x8B" && one != "\xEF\xBB\xBF" && one != "\xE2\x80\xAF") {
      out += one;  // all but blanks of no width or a narrow one
    }
  }
  return out;
}

}  // namespace detail

EDL_INLINE std::string detail::spelled_out(std::string_view name) {
  std::string out;
  auto const first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
  for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 64); ++i) {
    auto const byte = static_cast<unsigned char>(name[i]);
    bool const plain = byte >= 0x20 && byte < 0x7F && i >= first && i <= last;
    out += plain ? std::string(1, name[i]) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

EDL_INLINE std::string detail::look_alike(std::string_view wanted,
                                          std::vector<std::string_view> const& names) {
  std::string const looks = looks_of(wanted);
  for (std::string_view const name : names)
    if (name != wanted && looks_of(name) == looks)
      return fmt::format("; '{}' looks like '{}' and is another name", spelled_out(name),
                         spelled_out(wanted));
  return {};
}

EDL_INLINE std::vector<std::string> table::features() const {
  std::vector<std::string> names;
  for (table_column const& c : columns()) names.push_back(c.name);
  return names;
}

EDL_INLINE void agree(std::span<table* const> files) {
  std::vector<table_column> all;
  std::unordered_map<std::string, std::size_t> places;
  for (table const* const file : files)
    for (auto const& column : file->columns()) {
      auto const [known, fresh] = places.try_emplace(column.name, all.size());
      if (fresh) all.push_back({column.name});
      table_column& one = all[known->second];
      one.kind = wider(one.kind, column.says_nothing ? example::kind::none : column.kind);
      one.spelled |= column.spelled;
      one.says_nothing |= column.says_nothing;
    }
  for (table_column& one : all)
    if (one.says_nothing && one.kind == example::kind::none) one.kind = example::kind::strings;
  for (table* const file : files) file->agree(all);
}

}  // namespace edl::data
