// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/tokens/merges.hpp"

namespace edl::tokens {

struct tokenizer_parts;

/// A tokenizer of byte-pair encoding, read from a `tokenizer.json` of Hugging Face's library
/// (huggingface.co/docs/tokenizers), or from a `tokenizer.model` of SentencePiece
/// (`tokens::read_sentence_pieces`). Of the former it reads the model BPE; the pre-tokenizers ByteLevel,
/// Split, Digits and sequences of them; the normalizer NFC; added tokens; the post-processors ByteLevel and
/// TemplateProcessing; the decoders ByteLevel, ByteFallback and Fuse. Whatever else a file has is refused.
/// Copies share all data. Thread safety: safe.
class tokenizer {
 public:
  /// Throws data_error, which names the file and the JSON path of the fault. A file may have 64 MiB,
  /// 1,048,576 tokens of at most 4,096 bytes, and 2,097,152 merges.
  static tokenizer from_file(std::string const& path);

  /// The same from the content of a file; `name` stands for the path in errors.
  static tokenizer from_content(std::string_view content, std::string const& name);
  static tokenizer from_json(std::string_view content, std::string const& name = "tokenizer.json");

  std::size_t vocabulary() const;  ///< the largest id, and one more: rows that an embedding needs
  std::uint64_t digest() const;    ///< of the content of the file

  /// The id of a token as the file writes it, e.g. "<|endoftext|>".
  std::optional<token_id> find(std::string_view token) const;

  /// The text of tokens: their bytes, with U+FFFD for each maximal part that is not UTF-8. `special`: special
  /// tokens are part of the text. The blank that SentencePiece puts before a text is none. Throws data_error
  /// for an id that is not in the vocabulary.
  std::string decode(std::span<token_id const> ids, bool special = true) const;

 private:
  friend class encoder;
  friend class decoder;
  explicit tokenizer(std::shared_ptr<tokenizer_parts const> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<tokenizer_parts const> parts_;
};

/// Texts as tokens. It remembers the tokens of words, in at most about 32 MiB. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class encoder {
 public:
  explicit encoder(tokenizer const& by);
  encoder(encoder&&) noexcept;
  ~encoder();

  /// Appends the tokens of a text. Bytes that are not UTF-8 are read as U+FFFD, one for each maximal part.
  /// Added tokens in the text are recognized, special ones, too. `template_tokens`: also what the file's
  /// TemplateProcessing puts before and after a text. Throws edl::error if an expression gives up on the
  /// text.
  void encode(std::string_view text, std::vector<token_id>& to, bool template_tokens = false);

  std::vector<token_id> encode(std::string_view text, bool template_tokens = false) {
    std::vector<token_id> ids;
    encode(text, ids, template_tokens);
    return ids;
  }

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The text of tokens that come one at a time. Thread safety: as `encoder`.
class decoder {
 public:
  /// `begins`: the first token begins a text; otherwise the tokens continue one.
  explicit decoder(tokenizer by, bool special = true, bool begins = true)
      : by_(std::move(by)), special_(special), begins_(begins) {}

  /// The text that is complete with this token: the end of a character that is not is held back. Throws as
  /// `tokenizer::decode`.
  std::string add(token_id id);

  /// U+FFFD if a character is incomplete. The next text may begin.
  std::string finish();

 private:
  tokenizer by_;
  bool special_, begins_;
  std::string held_;
};

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/tokenizer.ipp"
#endif
