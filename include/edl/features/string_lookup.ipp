// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <fstream>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/features/string_lookup.hpp"

namespace edl::features {
namespace detail {

EDL_INLINE void refuse_twins(std::string_view word) {
  throw usage_error(fmt::format("the word '{}' stands twice in a vocabulary", printable(word, 64)));
}

EDL_INLINE std::int64_t unknown_id(std::string_view text, std::size_t known, int unknown) {
  if (unknown < 1) return -1;
  return std::int64_t(known) + hashing{unknown}(text);
}

}  // namespace detail

EDL_INLINE loaded_lookup::loaded_lookup(std::vector<std::string> const& words, int unknown)
    : unknown_(unknown) {
  for (std::string const& word : words)
    if (!ids_.emplace(word, std::int64_t(ids_.size())).second) detail::refuse_twins(word);
}

EDL_INLINE loaded_lookup loaded_lookup::from_file(std::string const& path, int unknown) {
  constexpr std::string_view blanks = " \t\r\n";
  std::ifstream in(path);
  loaded_lookup all({}, unknown);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::size_t const first = line.find_first_not_of(blanks);
    std::string const word = first == std::string::npos
                                 ? std::string()
                                 : line.substr(first, line.find_last_not_of(blanks) + 1 - first);
    if (!all.ids_.emplace(word, std::int64_t(all.ids_.size())).second)
      throw usage_error(
          fmt::format("{}:{}: the word '{}' stands there a second time", path, number, printable(word, 64)));
  }
  if (number == 0) throw usage_error(fmt::format("{}: there is no vocabulary with a word a line", path));
  return all;
}

EDL_INLINE std::int64_t loaded_lookup::operator()(std::string_view text) const {
  auto const it = ids_.find(text);
  return it != ids_.end() ? it->second : detail::unknown_id(text, ids_.size(), unknown_);
}

}  // namespace edl::features
