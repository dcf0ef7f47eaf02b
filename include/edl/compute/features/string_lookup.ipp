// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <span>
#include <utility>

#include "edl/compute/features/pieces.hpp"
#include "edl/compute/features/string_lookup.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/printable.hpp"

namespace edl::features {
namespace detail {

EDL_INLINE void refuse_twins(std::string_view word) {
  throw usage_error(fmt::format("the word '{}' occurs twice in a vocabulary", printable(word, 64)));
}

EDL_INLINE lookup_count& counted_here() {
  static thread_local lookup_count all;
  return all;
}

EDL_INLINE void count_lookup(bool known) {
  lookup_count& all = counted_here();
  ++all.words;
  all.unknown += !known;
}

EDL_INLINE std::int64_t unknown_id(std::string_view text, std::size_t known, int unknown) {
  if (unknown < 1) return -1;
  return std::int64_t(known) + hashing{unknown}(text);
}

}  // namespace detail

EDL_INLINE lookup_count lookups_of_thread() { return detail::counted_here(); }

EDL_INLINE std::string to_text(lookup_count const& n) {
  return fmt::format("{} of {} words that `feed` looked up are in no vocabulary ({:.3g} %)", n.unknown,
                     n.words, 100 * double(n.unknown) / double(std::max<std::uint64_t>(n.words, 1)));
}

EDL_INLINE loaded_lookup::loaded_lookup(std::vector<std::string> const& words, int unknown)
    : unknown_(unknown) {
  for (std::string const& word : words)
    if (!ids_.emplace(word, std::int64_t(ids_.size())).second) detail::refuse_twins(word);
}

EDL_INLINE loaded_lookup loaded_lookup::from_file(std::string const& path, int unknown) {
  constexpr std::string_view blanks = " \t\r\n";
  constexpr std::uint64_t most = 1ull << 30;
  input_file const file(path);
  if (file.size() > most)
    throw usage_error(
        fmt::format("{}: a vocabulary of {} bytes; at most {} are read", path, file.size(), most));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) throw usage_error(fmt::format("{}: the file has no words", path));
  loaded_lookup all({}, unknown);
  std::size_t number = 0;
  for (std::string_view const line : pieces(text, '\n', "\n")) {  // no line is ignored
    ++number;
    std::size_t const first = std::min(line.find_first_not_of(blanks), line.size());
    std::string word(line.substr(first, line.find_last_not_of(blanks) + 1 - first));
    if (!all.ids_.emplace(std::move(word), std::int64_t(number) - 1).second)
      throw usage_error(
          fmt::format("{}:{}: the word '{}' occurs a second time", path, number, printable(line, 64)));
  }
  return all;
}

EDL_INLINE std::int64_t loaded_lookup::operator()(std::string_view text) const {
  auto const it = ids_.find(text);
  if (!text.empty()) detail::count_lookup(it != ids_.end());
  return it != ids_.end() ? it->second : detail::unknown_id(text, ids_.size(), unknown_);
}

}  // namespace edl::features
