// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/tokens/tokenizer.hpp"
#include "edl/compute/tokens/unicode.hpp"

namespace tokens_test {

using nlohmann::json;
using ids = std::vector<edl::tokens::token_id>;

/// A byte as GPT-2's alphabet writes it.
inline std::string letter(unsigned char byte) {
  std::string text;
  edl::tokens::append_utf8(edl::tokens::byte_alphabet()[byte], text);
  return text;
}

inline std::string letters(std::string_view bytes) {
  std::string text;
  for (char const c : bytes) text += letter(static_cast<unsigned char>(c));
  return text;
}

/// A byte-level tokenizer: id b is byte b, 256 + i what the i-th pair becomes, and then <|end|>, which is
/// special, and <tool>, which is not.
inline json small(std::vector<std::pair<std::string, std::string>> const& pairs) {
  json vocab, merges = json::array();
  for (unsigned b = 0; b < 256; ++b) vocab[letter(static_cast<unsigned char>(b))] = b;
  for (auto const& [left, right] : pairs) {
    merges.push_back(letters(left) + " " + letters(right));
    vocab[letters(left + right)] = vocab.size();
  }
  auto const next = vocab.size();
  json const byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", next}, {"content", "<|end|>"}, {"special", true}, {"normalized", false}},
            {{"id", next + 1}, {"content", "<tool>"}, {"special", false}, {"normalized", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"unk_token", nullptr}, {"vocab", vocab}, {"merges", merges}}}};
}

inline json hello() {
  return small({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "hello"}, {"\xc3", "\xa9"}});
}

inline edl::tokens::tokenizer made(json const& file) {
  return edl::tokens::tokenizer::from_json(file.dump());
}

inline ids encoded(json const& file, std::string_view text, bool template_tokens = false) {
  return edl::tokens::encoder(made(file)).encode(text, template_tokens);
}

/// The texts of the tokens of a text, with "|" between.
inline std::string shown(json const& file, std::string_view text) {
  auto const by = made(file);
  std::string all;
  for (auto const id : edl::tokens::encoder(by).encode(text))
    all += (all.empty() ? "" : "|") + by.decode({&id, 1});
  return all;
}

}  // namespace tokens_test
