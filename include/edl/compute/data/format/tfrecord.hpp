// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {
class tfrecord_reader;
}

/// TFRecord files without compression, whose records are serialised tf.train.Examples. A record is a 64-bit
/// length, the length's checksum, the bytes and their checksum (tensorflow/core/lib/io/record_writer.h;
/// CRC-32C, masked). A file is a shard, one without records is none.
class tfrecord_source : public source {
 public:
  /// Goes through the records' lengths, in this order of files. A data_error names file and byte if a length
  /// is damaged, or a record has more than 1 GiB. With `skip_damaged`, the rest of that file is left out and
  /// told by `damage`. The checksum of a record's bytes is compared when it is read.
  explicit tfrecord_source(std::vector<std::string> const& paths, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::span<std::string const> damage() const override { return damage_; }

 private:
  friend class detail::tfrecord_reader;
  struct file {
    std::string path;
    std::vector<std::uint64_t> records;  // where each begins, then where the last ends
  };

  std::vector<file> files_;
  std::vector<shard> shards_;
  std::vector<std::string> damage_;
};

/// Whether a file begins as TFRecord does: its first eight bytes have the checksum that follows them.
bool is_tfrecord(std::string const& path);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/tfrecord.ipp"
#endif
