// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

enum class compressor : std::uint32_t { none, snappy, gzip };

constexpr std::array<std::string_view, 3> names(compressor) { return {"none", "snappy", "gzip"}; }

/// Two formats share the magic number 0x01020304. `go` is what github.com/wangkuiyi/recordio writes: header
/// {magic, CRC-32 of the stored payload, compressor 0 to 2, payload size, records}, snappy in its framing
/// format. `python` is what pyrecordio 0.0.2 wrote before May 2019: {magic, records, CRC-32C, compressor 1 to
/// 3, payload size}, snappy in its block format. All numbers are little-endian uint32; an unpacked payload is
/// {uint32 size, bytes} per record.
enum class recordio_layout { go, python };

/// The positions of the chunks of a RecordIO file, found with one seek per chunk.
struct recordio_index {
  struct chunk {
    std::uint64_t offset = 0;  ///< of its header
    std::uint64_t first = 0;   ///< number of its first record
    std::uint32_t size = 0, records = 0, checksum = 0;
    compressor with = compressor::none;

    friend bool operator==(chunk const&, chunk const&) = default;
  };

  std::string path;
  recordio_layout layout = recordio_layout::go;
  std::vector<chunk> chunks;
  std::uint64_t records = 0;
  std::string damage;  ///< with `skip_damaged`: why the rest after the last chunk is skipped
};

/// Reads the headers of a file. For a damaged one it throws data_error with the offset, the expected and the
/// found value; with `skip_damaged` the index ends there instead.
recordio_index index_recordio(std::string const& path, bool skip_damaged = false);

/// Random access to the records of a file. When it loads a chunk it verifies the checksum, and compares the
/// header with the index, so it detects a file that changed meanwhile. Thread safety: distinct objects: safe
/// (they may share an index). Shared objects: unsafe.
class recordio_reader {
 public:
  explicit recordio_reader(std::string const& path);
  explicit recordio_reader(std::shared_ptr<recordio_index const> index,
                           std::size_t cache_bytes = 64ull << 20);

  /// Continues with another file; the cache stays.
  void open(std::shared_ptr<recordio_index const> index);

  std::uint64_t records() const { return index_->records; }
  recordio_index const& index() const { return *index_; }

  /// The bytes of a record, valid until the next call. Throws data_error if its chunk is damaged; other
  /// chunks stay readable.
  std::string_view read(std::uint64_t record);

 private:
  struct extent {
    std::uint32_t begin = 0, end = 0;
  };
  /// A chunk that was read and verified. If its records have their own frames, as the Go writer makes them,
  /// it stays packed, and only requested records are unpacked.
  struct cached {
    std::shared_ptr<recordio_index const> index;
    std::size_t chunk = 0;
    std::uint64_t used = 0;  // when, by the count of loads
    bool packed = false;
    std::string payload;
    std::vector<extent> records;  // in the payload
    std::string failure;          // why it cannot be read, so that it is not retried for each record
  };
  cached& find(std::size_t chunk);
  void load(std::size_t chunk, cached& into);
  void split(std::size_t chunk, cached& into) const;
  static bool split_frames(std::uint32_t records, cached& into);

  std::shared_ptr<recordio_index const> index_;
  detail::input_file file_;
  std::string stored_, record_;
  std::vector<cached> cache_;
  std::size_t cache_bytes_ = 0, chunk_ = 0, slot_ = 0;  // the last two: of the record before
  std::uint64_t loads_ = 0;
};

struct recordio_options {
  compressor with = compressor::snappy;
  std::size_t max_chunk_bytes = 32u << 20;  ///< of records; each must be smaller. At most 512 MiB
};

/// Writes a file in layout `go`, byte for byte as the Go writer does (the compressed bytes are the libraries'
/// own choice). The file appears under its name when it is complete. Thread safety: distinct objects: safe.
/// Shared objects: unsafe.
class recordio_writer {
 public:
  explicit recordio_writer(std::string const& path, recordio_options const& options = {});

  void write(std::string_view record);

  /// Writes the rest and renames the file. Without this call the destructor removes the unfinished file.
  void close();

  std::uint64_t records() const { return records_; }

 private:
  void flush();

  recordio_options options_;
  durable_file file_;
  std::string payload_, packed_;
  std::size_t bytes_ = 0, unpacked_ = 0;  // of the chunk's records, without and with their prefixes
  std::uint32_t in_chunk_ = 0;
  std::uint64_t records_ = 0;
};

/// RecordIO files whose records are serialised tf.train.Examples; a file is a shard, and one without records
/// is omitted.
class recordio_source : public source {
 public:
  /// Indexes the files, in this order. Throws data_error, which names the first damaged file; with
  /// `skip_damaged` it skips unreadable parts, and reports them in `damage`.
  explicit recordio_source(std::vector<std::string> const& paths, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::span<std::string const> damage() const override { return damage_; }

 private:
  std::vector<std::shared_ptr<recordio_index const>> files_;
  std::vector<shard> shards_;
  std::vector<std::string> damage_;
  std::size_t cache_bytes_;
};

namespace detail {
class tfrecord_reader;
}

/// TFRecord files without compression, whose records are serialised tf.train.Examples. A record is a 64-bit
/// length, the length's checksum, the bytes and their checksum (tensorflow/core/lib/io/record_writer.h;
/// CRC-32C, masked). A file is a shard; one without records is omitted.
class tfrecord_source : public source {
 public:
  /// Reads all records' lengths, in this order of files. Throws data_error, which names file and byte, if a
  /// length is damaged, or a record has more than 1 GiB. With `skip_damaged` it skips the rest of that file,
  /// and reports it in `damage`. The checksum of a record's bytes is verified when it is read.
  explicit tfrecord_source(std::vector<std::string> const& paths, source_options const& options = {});

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::span<std::string const> damage() const override { return damage_; }

 private:
  friend class detail::tfrecord_reader;
  struct file {
    std::string path;
    std::vector<std::uint64_t> records;  // the offset of each, then the end of the last
  };

  std::vector<file> files_;
  std::vector<shard> shards_;
  std::vector<std::string> damage_;
};

/// Whether a file begins like TFRecord: the checksum of its first eight bytes follows them.
bool is_tfrecord(std::string const& path);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/record_file.ipp"
#endif
