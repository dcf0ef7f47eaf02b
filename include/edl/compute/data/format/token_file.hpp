// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// The head of a token file: documents as ids of tokens, one after the other. All numbers are little-endian.
///
/// | bytes | |
/// |---|---|
/// | 0 to 7 | "EDLTOKEN" |
/// | 8 to 11 | version, 1 |
/// | 12 to 15 | bytes of an id: 2 for a vocabulary of up to 65,536 tokens, otherwise 4 |
/// | 16 to 23 | size of the vocabulary; ids are below |
/// | 24 to 31 | tokens T |
/// | 32 to 39 | documents D |
/// | 40 to 47 | digest of the tokenizer; 0: not known |
/// | 48 to 55 | 0 |
/// | 56 to 59 | CRC-32 (zlib's) of bytes 0 to 55 |
/// | 60 to 63 | 0 |
/// | from 64 | T ids, zeros up to a multiple of 8 bytes, then D numbers of 64 bits: where documents end |
struct token_file_head {
  std::uint32_t width = 2;
  std::uint64_t vocabulary = 0, tokens = 0, documents = 0, tokenizer = 0;

  static constexpr std::uint64_t size = 64;
  std::uint64_t index() const { return size + (tokens * width + 7) / 8 * 8; }  ///< where it begins
};

/// Writes a token file, which appears when it is complete. It keeps 8 bytes per document in memory. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class token_file_writer {
 public:
  /// `tokenizer`: its digest. Throws edl::error if the file cannot be written.
  token_file_writer(std::string path, std::uint64_t vocabulary, std::uint64_t tokenizer = 0);

  /// Appends a document. Throws edl::error for an id that is not in the vocabulary.
  void add(std::span<std::uint32_t const> document);

  void commit();

  std::uint64_t tokens() const { return head_.tokens; }
  std::uint64_t documents() const { return ends_.size(); }

 private:
  token_file_head head_;
  durable_file file_;
  std::vector<std::uint64_t> ends_;
  std::string bytes_;
};

/// Reads the head of a token file. Throws data_error if the file is none, or if its size is not what the head
/// says.
token_file_head read_token_file_head(detail::input_file const& file);

/// Token files cut into windows, for models that predict the next token. Record i of a file has one feature,
/// `tokens`: the `length` + 1 ids from place i · length, whatever documents they belong to. That is one more
/// than the network reads, so that each token has a successor. An incomplete window at the end is left out. A
/// file is a shard, and is read in place.
class token_source : public source {
 public:
  static constexpr std::uint64_t longest = 1u << 20;

  /// A usage_error if the length is not from 1 to `longest`. A data_error if a file is none of tokens or
  /// shorter than a window, or if the files have vocabularies of different sizes or different tokenizers.
  token_source(std::vector<std::string> const& paths, std::uint64_t length);

  /// The same from one argument, `tokens:LENGTH:FILE`, where FILE may be a pattern.
  static std::unique_ptr<source> open_named(std::string const& given);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::vector<std::string> features() const override { return {"tokens"}; }

 private:
  friend class token_reader;
  struct file {
    detail::input_file in;
    token_file_head head;
  };
  std::uint64_t length_;
  std::vector<file> files_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/token_file.ipp"
#endif
