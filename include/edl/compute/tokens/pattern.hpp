// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace edl::tokens {

/// A regular expression that cuts valid UTF-8 into pieces, as tokenizer.json files have it: \p{…}, lookahead,
/// and case-insensitive groups. It is compiled by PCRE2. Thread safety: safe; each thread has its own
/// `matcher`.
class pattern {
 public:
  struct code;

  /// Throws edl::error, which quotes the expression, if it cannot be compiled, is longer than 4,096 bytes, or
  /// has what Oniguruma, the library behind Hugging Face's tokenizers, reads otherwise (\h, &&, (?m) or moves
  /// a match (\K).
  explicit pattern(std::string_view expression);

  /// One that matches this text.
  static pattern literal(std::string_view text);

  /// Finds the matches, with memory of its own. It must not outlive the pattern.
  class matcher {
   public:
    explicit matcher(pattern const& of);
    matcher(matcher&&) noexcept;
    ~matcher();

    /// The next match that is not empty, from byte `begin` of the text on. False: there is none, and both
    /// places are the text's end. Throws edl::error if the search takes too many steps.
    bool next(std::string_view text, std::size_t& begin, std::size_t& end);

   private:
    struct state;
    std::unique_ptr<state> state_;
  };

 private:
  friend class matcher;
  pattern(std::string_view expression, bool literal);

  std::shared_ptr<code const> code_;
};

/// The expressions of models' tokenizers, by which `train_tokenizer` may cut texts.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/pattern.ipp"
#endif
