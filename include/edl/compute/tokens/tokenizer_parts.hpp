// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edl/compute/tokens/merges.hpp"
#include "edl/compute/tokens/pattern.hpp"

namespace edl::tokens {

inline constexpr token_id no_token = ~token_id{0};

/// A hash map by texts that is also searched by views.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class T>
using text_map = std::unordered_map<std::string, T, text_hash, std::equal_to<>>;

/// Tokens that are found in a text before it is cut into words: at each place the longest.
struct added_tokens {
  struct token {
    token_id id = 0;
    bool strip_left = false, strip_right = false;  ///< takes the white space beside it, too
  };
  text_map<token> by_content;
  std::vector<std::size_t> lengths;     ///< of the contents, in bytes, from the longest
  std::array<bool, 256> begins_with{};  ///< whether a content begins with this byte

  void add(std::string const& content, token t);
};

/// One step of cutting a text.
struct cut {
  std::optional<pattern> by;  ///< none: the piece stays whole
  bool keeps_gaps = true;     ///< what lies between the matches is a piece, too
  bool adds_blank = false;    ///< a piece that does not begin with a blank gets one
};

/// What a tokenizer.json or a model of SentencePiece says.
struct tokenizer_parts {
  bool normalizes = false;  ///< by NFC
  added_tokens as_given;    ///< found before the text is normalized
  added_tokens normalized;  ///< found after it
  std::vector<cut> cuts;
  bool of_bytes = false;  ///< words are bytes, otherwise characters

  // Of SentencePiece:
  bool marks_blanks = false;       ///< a blank is U+2581 in a word
  bool begins_with_blank = false;  ///< a text gets one before it
  bool trims = false;              ///< blanks at a text's ends are left out, and those that follow a blank

  text_map<token_id> ids;                    ///< of the model's tokens: as bytes, or as characters
  std::array<token_id, 256> byte_ids{};      ///< with `of_bytes`: of each byte
  std::array<token_id, 256> fallback_ids{};  ///< with `byte_fallback`: of each byte of an unknown character
  bool byte_fallback = false, fuse_unknown = false, whole_words = false;
  token_id unknown = no_token;
  merges rules;

  std::vector<token_id> before, after;  ///< of TemplateProcessing

  text_map<token_id> written;      ///< ids of all tokens, as the file writes them
  std::vector<std::string> bytes;  ///< of each id's token
  std::vector<std::uint8_t> is;    ///< 0: no token has this id; 1: one; 2: a special one
  std::uint64_t digest = 0;
};

/// Reads the content of a tokenizer.json. Throws as `tokenizer::from_json`.
tokenizer_parts read_tokenizer(std::string_view content, std::string const& name);

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/tokenizer_parts.ipp"
#endif
