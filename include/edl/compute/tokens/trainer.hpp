// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/tokens/pattern.hpp"

namespace edl::tokens {

struct trainer_options {
  std::size_t vocabulary = 32'000;  ///< tokens: the 256 bytes, those of merges, and the special ones
  std::string_view cuts_by = llama3_pattern;          ///< how texts are cut into words
  std::vector<std::string> special{"<|endoftext|>"};  ///< at the end of the vocabulary
  std::uint64_t least_count = 2;                      ///< a pair that occurs less often is not merged
};

/// Makes a byte-level tokenizer of texts: again and again the pair of tokens that occurs most often within
/// words becomes a token (Sennrich et al., "Neural machine translation of rare words with subword units",
/// 2016), of equally frequent ones the pair with the smaller ids. The order of the texts does not matter. It
/// keeps each distinct word in memory; words of more than 256 bytes are left out. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class trainer {
 public:
  /// Throws usage_error if the vocabulary has no room for bytes and special tokens or more than 1,048,576
  /// tokens, or if a special token does not have 3 to 256 bytes or is there twice; edl::error for a bad
  /// expression.
  explicit trainer(trainer_options options);
  ~trainer();

  /// Counts the words of a text. Bytes that are not UTF-8 are read as U+FFFD, as the tokenizer does.
  void add(std::string_view text);

  /// The content of a tokenizer.json that `tokenizer` and Hugging Face's library read. It may have fewer
  /// tokens than wanted, if pairs are rare. `progress` is told of tokens and of how many there will be.
  std::string train(std::function<void(std::size_t, std::size_t)> const& progress = {}) const;

  std::size_t words() const;  ///< distinct ones

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/trainer.ipp"
#endif
