// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "edl/compute/features/hashing.hpp"

namespace edl::features {
namespace detail {

void refuse_twins(std::string_view word);

void count_lookup(bool known);

/// The id of a text that the vocabulary lacks: behind the others, by its fingerprint where there are several.
std::int64_t unknown_id(std::string_view text, std::size_t known, int unknown);

}  // namespace detail

/// What this thread's lookups, of any vocabulary, were asked for since it began.
struct lookup_count {
  std::uint64_t words = 0;    ///< texts that are not empty
  std::uint64_t unknown = 0;  ///< those of them that the vocabulary lacked
};
lookup_count lookups_of_thread();

/// "3 of 400 words that `feed` looked up are in no vocabulary (0.75 %)".
std::string to_text(lookup_count const& n);

/// The place of a text in a vocabulary: `string_lookup{{"Private", "State-gov"}}`. Texts that it lacks get
/// one of the `unknown` ids behind it (1 unless told), or −1 where there are none.
template <std::size_t N>
class string_lookup {
 public:
  /// A word that comes twice does not compile in a constant, and throws usage_error elsewhere.
  constexpr string_lookup(std::string_view const (&words)[N], int unknown = 1);

  constexpr std::int64_t operator()(std::string_view text) const {
    auto const it = std::ranges::lower_bound(order_, text, {}, [&](std::size_t i) { return words_[i]; });
    bool const known = it != order_.end() && words_[*it] == text;
    if (!std::is_constant_evaluated() && !text.empty()) detail::count_lookup(known);
    return known ? std::int64_t(*it) : detail::unknown_id(text, N, unknown_);
  }
  constexpr std::int64_t size() const { return std::int64_t(N) + unknown_; }

 private:
  std::array<std::string_view, N> words_;
  std::array<std::size_t, N> order_;  // of the words by the alphabet
  int unknown_;
};

/// The same with a vocabulary that is only known when the program runs.
class loaded_lookup {
 public:
  /// Throws usage_error for a word that comes twice.
  explicit loaded_lookup(std::vector<std::string> const& words, int unknown = 1);

  /// A file of UTF-8 with a word a line; blanks at both ends do not count. Throws usage_error, which names
  /// file and line, for a word that comes twice, no word, or more than 1 GiB. Throws edl::error for a file
  /// that cannot be read.
  static loaded_lookup from_file(std::string const& path, int unknown = 1);

  std::int64_t operator()(std::string_view text) const;
  std::int64_t size() const { return std::int64_t(ids_.size()) + unknown_; }

 private:
  std::map<std::string, std::int64_t, std::less<>> ids_;
  int unknown_;
};

template <std::size_t N>
constexpr string_lookup<N>::string_lookup(std::string_view const (&words)[N], int unknown)
    : unknown_(unknown) {
  std::ranges::copy(words, words_.begin());
  for (std::size_t i = 0; i < N; ++i) order_[i] = i;
  std::ranges::sort(order_, {}, [&](std::size_t i) { return words_[i]; });
  for (std::size_t i = 1; i < N; ++i)
    if (words_[order_[i - 1]] == words_[order_[i]]) detail::refuse_twins(words_[order_[i]]);
}

}  // namespace edl::features

#ifdef EDL_HEADER_ONLY
#include "edl/compute/features/string_lookup.ipp"
#endif
