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

/// The id of a text that is not in the vocabulary: after the others, chosen by its fingerprint if there are
/// several.
std::int64_t unknown_id(std::string_view text, std::size_t known, int unknown);

}  // namespace detail

/// Counts of this thread's lookups in all vocabularies since it started.
struct lookup_count {
  std::uint64_t words = 0;    ///< texts that are not empty
  std::uint64_t unknown = 0;  ///< those of them that were not in the vocabulary
};
lookup_count lookups_of_thread();

/// "3 of 400 words that `feed` looked up are in no vocabulary (0.75 %)".
std::string to_text(lookup_count const& n);

/// The index of a text in a vocabulary: `string_lookup{{"Private", "State-gov"}}`. Other texts get one of the
/// `unknown` ids after it (default 1), or −1 if there are none.
template <std::size_t N>
class string_lookup {
 public:
  /// A duplicate word does not compile in a constant, and throws usage_error at run time.
  constexpr string_lookup(std::string_view const (&words)[N], int unknown = 1);

  constexpr std::int64_t operator()(std::string_view text) const {
    auto const it = std::ranges::lower_bound(order_, text, {}, [&](std::size_t i) { return words_[i]; });
    bool const known = it != order_.end() && words_[*it] == text;
    if (!std::is_constant_evaluated() && !text.empty()) detail::count_lookup(known);
    return known ? std::int64_t(*it) : detail::unknown_id(text, N, unknown_);
  }
  constexpr std::int64_t size() const { return std::int64_t(N) + unknown_; }
  constexpr std::array<std::string_view, N> const& words() const { return words_; }

 private:
  std::array<std::string_view, N> words_;
  std::array<std::size_t, N> order_;  // of the words, sorted
  int unknown_;
};

/// The same with a vocabulary that is only known at run time.
class loaded_lookup {
 public:
  /// Throws usage_error for a duplicate word.
  explicit loaded_lookup(std::vector<std::string> const& words, int unknown = 1);

  /// Reads a UTF-8 file with a word per line; ignores blanks at both ends. Throws usage_error, which names
  /// file and line, for a duplicate word, an empty file, or more than 1 GiB. Throws edl::error for a file
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
