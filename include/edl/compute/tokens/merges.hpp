// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace edl::tokens {

using token_id = std::uint32_t;

/// The merges of a byte-pair encoding (Sennrich et al., "Neural machine translation of rare words with
/// subword units", 2016): which pairs of tokens become which token, and which pair goes first. Thread safety:
/// as a vector.
class merges {
 public:
  struct result {
    std::uint32_t rank = 0;  ///< lower ones go first
    token_id id = 0;
  };

  /// `count`: how many `add` will put in, at most.
  explicit merges(std::size_t count = 0);

  /// A pair that was there before gets the new result.
  void add(token_id left, token_id right, result r);

  /// Null: the pair is not merged.
  result const* find(token_id left, token_id right) const;

  /// Reused memory of `apply`.
  struct workspace {
    struct symbol {
      token_id id;
      std::uint32_t before, after;
      bool gone = false;
    };
    struct candidate {
      std::uint32_t rank, place;
      token_id left, right, id;
    };
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };

  /// Appends the tokens that a word's become: always the pair of the lowest rank is merged, of equal ones the
  /// first. The time is n·log(n) for n tokens.
  void apply(std::span<token_id const> word, workspace& with, std::vector<token_id>& to) const;

 private:
  struct entry {
    std::uint64_t pair = ~std::uint64_t{0};
    result becomes;
  };
  std::size_t place_of(std::uint64_t pair) const;

  std::vector<entry> entries_;  // a hash table with linear probing; half of it is empty
};

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/merges.ipp"
#endif
