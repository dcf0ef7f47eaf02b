// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::data {
namespace detail {

static_assert(std::endian::native == std::endian::little,
              "files are read and written in place as little-endian");

inline constexpr std::uint32_t recordio_magic = 0x01020304;
inline constexpr std::size_t recordio_header_bytes = 20;
inline constexpr std::size_t recordio_chunk_limit = 1u << 30;  // of stored or of unpacked bytes

using recordio_header = std::array<std::uint32_t, 5>;

/// A header's claims in one layout; the caller checks whether they are possible.
struct recordio_claim {
  std::uint32_t checksum, compressor, size, records;
  std::uint32_t first_compressor;

  bool known_compressor() const { return compressor - first_compressor <= 2; }
};

inline recordio_claim interpret(recordio_header const& h, recordio_layout layout) {
  if (layout == recordio_layout::go) return {h[1], h[2], h[3], h[4], 0};
  return {h[2], h[3], h[4], h[1], 1};
}

inline std::uint32_t payload_checksum(std::string_view payload, recordio_layout layout) {
  return layout == recordio_layout::go ? crc32(payload) : crc32c(payload);
}

/// Determines the layout from the first header. Only very unusual files have a legal compressor in both
/// layouts; the checksum then decides.
EDL_INLINE recordio_layout detect_layout(input_file const& file, recordio_header const& header) {
  auto const go = interpret(header, recordio_layout::go), python = interpret(header, recordio_layout::python);
  if (!python.known_compressor()) return recordio_layout::go;
  if (!go.known_compressor()) return recordio_layout::python;
  if (go.size > file.size() - recordio_header_bytes) return recordio_layout::python;
  std::string payload(go.size, '\0');  // 1 to 3 bytes, because one layout's size is the other's compressor
  file.read(recordio_header_bytes, payload.data(), payload.size());
  return crc32(payload) == go.checksum ? recordio_layout::go : recordio_layout::python;
}

}  // namespace detail

EDL_INLINE recordio_index index_recordio(std::string const& path, bool skip_damaged) {
  detail::input_file const file{path};
  recordio_index index;
  index.path = path;
  std::uint64_t at = 0;
  auto const refuse = [&](std::string const& what) {
    return data_error(fmt::format("{}: chunk {} at byte {}: {}", path, index.chunks.size(), at, what));
  };
  try {
    while (at < file.size()) {
      auto const rest = file.size() - at;
      if (rest < detail::recordio_header_bytes)
        throw refuse(fmt::format("a header has {} bytes, {} are left", detail::recordio_header_bytes, rest));
      detail::recordio_header header;
      file.read(at, header.data(), detail::recordio_header_bytes);
      if (header[0] != detail::recordio_magic)
        throw refuse(fmt::format("expected the RecordIO magic number {:#010x}, found {:#010x}{}",
                                 detail::recordio_magic, header[0], at ? "" : "; is this a RecordIO file?"));
      if (at == 0) index.layout = detail::detect_layout(file, header);
      auto const claim = detail::interpret(header, index.layout);
      if (!claim.known_compressor())
        throw refuse(fmt::format("expected a compressor from {} to {}, found {}", claim.first_compressor,
                                 claim.first_compressor + 2, claim.compressor));
      if (claim.size > rest - detail::recordio_header_bytes)
        throw refuse(
            fmt::format("a payload of {} bytes is expected, {} are left; the file is cut off or damaged",
                        claim.size, rest - detail::recordio_header_bytes));
      // No compressor reaches more than 1,032 to 1 (deflate), and a record takes at least 4 bytes.
      auto const unpacked =
          std::min<std::uint64_t>(detail::recordio_chunk_limit, std::uint64_t(claim.size) * 1032);
      if (claim.size > detail::recordio_chunk_limit || claim.records > unpacked / 4)
        throw refuse(fmt::format("{} records in {} bytes cannot be", claim.records, claim.size));
      // The checksum covers only the payload; without this check, a count damaged to 0 would silently hide
      // records.
      if (claim.records == 0 && claim.size > 0)
        throw refuse(fmt::format("a payload of {} bytes claims to hold no records", claim.size));
      index.chunks.push_back({at, index.records, claim.size, claim.records, claim.checksum,
                              compressor(claim.compressor - claim.first_compressor)});
      index.records += claim.records;
      at += detail::recordio_header_bytes + claim.size;
    }
  } catch (data_error const& e) {
    if (!skip_damaged) throw;
    index.damage =
        fmt::format("{}; {} of the file's {} bytes are left out", e.what(), file.size() - at, file.size());
  }
  return index;
}

EDL_INLINE recordio_reader::recordio_reader(std::string const& path)
    : recordio_reader(std::make_shared<recordio_index const>(index_recordio(path))) {}

EDL_INLINE recordio_reader::recordio_reader(std::shared_ptr<recordio_index const> index,
                                            std::size_t cache_bytes)
    : cache_bytes_(cache_bytes) {
  open(std::move(index));
}

EDL_INLINE void recordio_reader::open(std::shared_ptr<recordio_index const> index) {
  file_ = detail::input_file{index->path};
  index_ = std::move(index);
  chunk_ = std::size_t(-1);
}

EDL_INLINE void recordio_reader::load(std::size_t number, cached& into) {
  auto const& chunk = index_->chunks[number];
  into.index = nullptr;
  into.packed = false;
  into.failure.clear();
  auto const placed = [&](char const* what) {
    return fmt::format("{}: chunk {} at byte {}: {}", index_->path, number, chunk.offset, what);
  };
  try {
    detail::recordio_header header;
    if (chunk.offset + detail::recordio_header_bytes + chunk.size > file_.size())
      throw changed_error("lies beyond the end of the file, which has shrunk since it was indexed");
    file_.read(chunk.offset, header.data(), detail::recordio_header_bytes);
    auto const claim = detail::interpret(header, index_->layout);
    if (header[0] != detail::recordio_magic || claim.checksum != chunk.checksum || claim.size != chunk.size ||
        claim.records != chunk.records ||
        claim.compressor != std::uint32_t(chunk.with) + claim.first_compressor)
      throw changed_error("its header was changed since the file was indexed; start again on the new file");
    stored_.resize(chunk.size);
    file_.read(chunk.offset + detail::recordio_header_bytes, stored_.data(), stored_.size());
    if (auto const found = detail::payload_checksum(stored_, index_->layout); found != chunk.checksum)
      throw data_error(
          fmt::format("checksum {:#010x} is expected, its {} bytes have {:#010x}; the file is damaged",
                      chunk.checksum, chunk.size, found));
    if (chunk.with == compressor::none) {
      into.payload.swap(stored_);
    } else if (chunk.with == compressor::gzip) {
      detail::unpack_gzip(stored_, detail::recordio_chunk_limit, into.payload);
    } else if (index_->layout == recordio_layout::python) {
      detail::unpack_snappy_block(stored_, detail::recordio_chunk_limit, into.payload);
    } else {
      into.payload.swap(stored_);
      into.packed = split_frames(chunk.records, into);
      if (!into.packed) {
        into.payload.swap(stored_);
        detail::unpack_snappy_frames(stored_, detail::recordio_chunk_limit, into.payload);
      }
    }
    if (!into.packed) split(number, into);
  } catch (changed_error const& e) {
    throw changed_error(placed(e.what()));
  } catch (detail::unread_error const&) {
    throw;  // the error may be transient
  } catch (data_error const& e) {
    into.failure = placed(e.what());
  }
  into.index = index_;
  into.chunk = number;
}

EDL_INLINE void recordio_reader::split(std::size_t number, cached& into) const {
  std::uint32_t const records = index_->chunks[number].records;
  std::size_t const size = into.payload.size();
  if (records > size / 4)
    throw data_error(fmt::format("{} records are expected in {} unpacked bytes", records, size));
  into.records.clear();
  into.records.reserve(records);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < records; ++i) {
    std::uint32_t length = 0;
    if (size - at >= 4) std::memcpy(&length, into.payload.data() + at, 4);
    if (size - at < 4 || length > size - at - 4)
      throw data_error(
          fmt::format("record {} of {} runs over the end of {} unpacked bytes", i, records, size));
    into.records.push_back({std::uint32_t(at + 4), std::uint32_t(at + 4 + length)});
    at += 4 + length;
  }
  if (at != size)
    throw data_error(
        fmt::format("{} of {} unpacked bytes are left after its {} records", size - at, size, records));
}

EDL_INLINE bool recordio_reader::split_frames(std::uint32_t records, cached& into) try {
  std::string_view const stream = into.payload;
  if (records > stream.size() / 12) return false;  // a frame of 4 bytes for the length alone
  into.records.clear();
  into.records.reserve(records);
  auto left = stream;
  detail::snappy_frame frame;
  for (std::uint32_t i = 0; i < records; ++i) {
    std::uint32_t length = 0;
    if (!detail::take_snappy_frame(stream, left, frame) || frame.raw != 4) return false;
    detail::unpack_snappy_frame(frame, reinterpret_cast<char*>(&length));
    auto const begin = stream.size() - left.size();
    for (std::uint64_t have = 0; have < length; have += frame.raw)
      if (!detail::take_snappy_frame(stream, left, frame) || frame.raw == 0 || frame.raw > length - have)
        return false;
    into.records.push_back({std::uint32_t(begin), std::uint32_t(stream.size() - left.size())});
  }
  return !detail::take_snappy_frame(stream, left, frame);
} catch (data_error const&) {
  return false;  // unpacking all of it will report the error
}

EDL_INLINE recordio_reader::cached& recordio_reader::find(std::size_t chunk) {
  if (chunk == chunk_) return cache_[slot_];
  ++loads_;
  std::size_t oldest = 0, held = 0;
  for (slot_ = 0; slot_ < cache_.size(); ++slot_) {
    auto& slot = cache_[slot_];
    if (slot.index == index_ && slot.chunk == chunk) break;
    if (slot.used < cache_[oldest].used) oldest = slot_;
    held += slot.payload.capacity() + slot.records.capacity() * sizeof(extent);
  }
  if (slot_ == cache_.size()) {
    // The older layout often has chunks of a kilobyte, so looking one up must stay cheap.
    bool const room = cache_.size() < 256 && held + index_->chunks[chunk].size <= cache_bytes_;
    if (cache_.size() < 2 || room)
      cache_.emplace_back();
    else
      slot_ = oldest;
    chunk_ = std::size_t(-1);
    load(chunk, cache_[slot_]);
    invariant(!cache_[slot_].failure.empty() || cache_[slot_].records.size() == index_->chunks[chunk].records,
              "a readable chunk has as many records as its header gives");
    invariant(cache_.size() <= 256, "a reader keeps no more chunks than it can look through fast");
  }
  chunk_ = chunk;
  cache_[slot_].used = loads_;
  return cache_[slot_];
}

EDL_INLINE std::string_view recordio_reader::read(std::uint64_t record) {
  auto const& chunks = index_->chunks;
  if (record >= index_->records)
    throw data_error(fmt::format("{}: no record {}: the file has {}", index_->path, record, index_->records));
  auto chunk = chunk_;
  if (chunk >= chunks.size() || record < chunks[chunk].first ||
      record - chunks[chunk].first >= chunks[chunk].records) {
    auto const after =
        std::upper_bound(chunks.begin(), chunks.end(), record,
                         [](std::uint64_t r, recordio_index::chunk const& c) { return r < c.first; });
    chunk = std::size_t(after - chunks.begin()) - 1;
  }
  auto const& slot = find(chunk);
  if (!slot.failure.empty()) throw data_error(slot.failure);
  auto const& [begin, end] = slot.records[std::size_t(record - chunks[chunk].first)];
  auto const bytes = std::string_view(slot.payload).substr(begin, end - begin);
  if (!slot.packed) return bytes;
  try {
    detail::unpack_snappy_frames(bytes, detail::recordio_chunk_limit, record_);
  } catch (data_error const& e) {
    throw data_error(fmt::format("{}: record {}: {}", index_->path, record, e.what()));
  }
  return record_;
}

EDL_INLINE recordio_writer::recordio_writer(std::string const& path, recordio_options const& options)
    : options_(options), file_(path) {
  if (options_.max_chunk_bytes < 1 || options_.max_chunk_bytes > detail::recordio_chunk_limit / 2)
    throw error(fmt::format("{}: chunks of {} bytes cannot be written, from 1 to {} can", path,
                            options_.max_chunk_bytes, detail::recordio_chunk_limit / 2));
}

EDL_INLINE void recordio_writer::write(std::string_view record) {
  if (record.size() >= options_.max_chunk_bytes)
    throw error(fmt::format("{}: record {} has {} bytes, a chunk holds less than {}; allow larger chunks",
                            file_.path(), records_, record.size(), options_.max_chunk_bytes));
  // The second limit is the reader's: prefixes do not count toward the first, and records may be empty.
  if (bytes_ + record.size() > options_.max_chunk_bytes ||
      std::max(unpacked_, payload_.size()) + 2 * record.size() + 64 > detail::recordio_chunk_limit)
    flush();
  auto const length = std::uint32_t(record.size());
  std::string_view const prefix{reinterpret_cast<char const*>(&length), 4};
  if (options_.with == compressor::snappy) {
    detail::append_snappy_frames(prefix, payload_);
    detail::append_snappy_frames(record, payload_);
  } else {
    payload_.append(prefix);
    payload_.append(record);
  }
  bytes_ += record.size();
  unpacked_ += 4 + record.size();
  ++in_chunk_, ++records_;
}

EDL_INLINE void recordio_writer::flush() {
  if (in_chunk_ == 0) return;
  if (options_.with == compressor::gzip) {
    detail::pack_gzip(payload_, packed_);
    payload_.swap(packed_);
  }
  detail::recordio_header const header{detail::recordio_magic, detail::crc32(payload_),
                                       std::uint32_t(options_.with), std::uint32_t(payload_.size()),
                                       in_chunk_};
  file_.write(std::string_view(reinterpret_cast<char const*>(header.data()), detail::recordio_header_bytes));
  file_.write(std::string_view(payload_));
  payload_.clear();
  bytes_ = unpacked_ = in_chunk_ = 0;
}

EDL_INLINE void recordio_writer::close() {
  flush();
  file_.commit();
}

namespace detail {

class recordio_source_reader final : public reader {
 public:
  recordio_source_reader(std::vector<std::shared_ptr<recordio_index const>> const& files,
                         std::size_t cache_bytes)
      : files_(files), cache_bytes_(cache_bytes) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= files_.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, files_.size()));
    if (!reader_) {
      reader_ = std::make_unique<recordio_reader>(files_[shard], cache_bytes_);
    } else if (shard != open_) {
      reader_->open(files_[shard]);
    }
    open_ = shard;
    auto const serialised = reader_->read(record);
    try {
      into.parse(serialised);
    } catch (data_error const& e) {
      throw data_error(fmt::format("{}: record {}: {}", files_[shard]->path, record, e.what()));
    }
  }

 private:
  std::vector<std::shared_ptr<recordio_index const>> const& files_;
  std::size_t cache_bytes_, open_ = 0;
  std::unique_ptr<recordio_reader> reader_;
};

}  // namespace detail

EDL_INLINE recordio_source::recordio_source(std::vector<std::string> const& paths,
                                            source_options const& options)
    : cache_bytes_(options.cache_bytes) {
  for (auto const& path : paths) {
    auto index = std::make_shared<recordio_index const>(index_recordio(path, options.skip_damaged));
    if (!index->damage.empty()) damage_.push_back(index->damage);
    if (index->records == 0) continue;
    shards_.push_back({path.substr(path.find_last_of('/') + 1), index->records});
    files_.push_back(std::move(index));
  }
}

EDL_INLINE std::unique_ptr<reader> recordio_source::open() const {
  return std::make_unique<detail::recordio_source_reader>(files_, cache_bytes_);
}

EDL_INLINE std::uint64_t recordio_source::digest(std::size_t shard) const {
  // A chunk's header contains the checksum of its records.
  detail::content_digest sum;
  for (recordio_index::chunk const& c : files_.at(shard)->chunks)
    for (std::uint64_t const number :
         {std::uint64_t(c.size), std::uint64_t(c.records), std::uint64_t(c.checksum), std::uint64_t(c.with)})
      sum.add(number);
  return sum.value();
}

namespace detail {

inline constexpr std::uint64_t tfrecord_head = 12, tfrecord_around = 16, tfrecord_limit = 1ull << 30;

template <class Number>
Number number_of(char const* bytes) {
  Number n;
  std::memcpy(&n, bytes, sizeof n);
  return n;
}

/// Whether a head's own checksum is right.
inline bool sound_head(char const* head) {
  return number_of<std::uint32_t>(head + 8) == masked(crc32c({head, 8}));
}

/// Reads heads in ascending order; if they are close to each other, it reads many at once.
class tfrecord_heads {
 public:
  explicit tfrecord_heads(input_file const& file) : file_(file) {}

  char const* at(std::uint64_t offset) {
    if (offset < begin_ || offset + tfrecord_head > begin_ + block_.size()) {
      block_.resize(std::size_t(std::min<std::uint64_t>(ahead_, file_.size() - offset)));
      file_.read(offset, block_.data(), block_.size());
      begin_ = offset;
    }
    return block_.data() + (offset - begin_);
  }

  /// `size`: of the previous record. Between large records reading ahead would be wasted.
  void expect(std::uint64_t size) { ahead_ = size < 4096 ? 256u << 10 : tfrecord_head; }

 private:
  input_file const& file_;
  std::uint64_t begin_ = 0, ahead_ = 4096;
  std::string block_;
};

class tfrecord_reader final : public reader {
 public:
  explicit tfrecord_reader(tfrecord_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= from_.files_.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, from_.files_.size()));
    auto const& [path, records] = from_.files_[shard];
    if (record + 1 >= records.size())
      throw data_error(fmt::format("{}: no record {}: the file has {}", path, record, records.size() - 1));
    if (!file_ || shard != open_) file_.emplace(path);
    open_ = shard;
    auto const at = records[std::size_t(record)], end = records[std::size_t(record) + 1];
    auto const refuse = [&](std::string const& what) {
      return data_error(fmt::format("{}: record {} at byte {}: {}", path, record, at, what));
    };
    bytes_.resize(std::size_t(end - at));
    file_->read(at, bytes_.data(), bytes_.size());
    file_->check_unchanged();
    std::string_view const payload(bytes_.data() + tfrecord_head, bytes_.size() - tfrecord_around);
    if (!sound_head(bytes_.data()) || number_of<std::uint64_t>(bytes_.data()) != payload.size())
      throw refuse("its length has changed since it was opened");
    auto const sum = number_of<std::uint32_t>(payload.data() + payload.size()),
               found = masked(crc32c(payload));
    if (sum != found)
      throw refuse(fmt::format("its checksum is {:#010x}, that of its bytes {:#010x}", sum, found));
    try {
      into.parse(payload);
    } catch (data_error const& e) {
      throw refuse(e.what());
    }
  }

 private:
  tfrecord_source const& from_;
  std::optional<input_file> file_;
  std::size_t open_ = 0;
  std::string bytes_;
};

}  // namespace detail

EDL_INLINE bool is_tfrecord(std::string const& path) {
  detail::input_file const file(path);
  char head[detail::tfrecord_head];
  if (file.size() < sizeof head) return false;
  file.read(0, head, sizeof head);
  return detail::sound_head(head);
}

EDL_INLINE tfrecord_source::tfrecord_source(std::vector<std::string> const& paths,
                                            source_options const& options) {
  for (auto const& path : paths) {
    detail::input_file const in(path);
    detail::tfrecord_heads heads(in);
    file f{path, {}};
    std::uint64_t at = 0;
    try {
      while (at < in.size()) {
        auto const refuse = [&](std::string const& what) {
          return data_error(fmt::format("{}: record {} at byte {}: {}", path, f.records.size(), at, what));
        };
        std::uint64_t const left = in.size() - at;
        if (left < detail::tfrecord_around) throw refuse("the file ends within it");
        char const* const head = heads.at(at);
        if (!detail::sound_head(head))
          throw refuse(at == 0
                           ? "its length has a wrong checksum; is this a TFRecord file without compression?"
                           : "its length has a wrong checksum");
        auto const size = detail::number_of<std::uint64_t>(head);
        if (size > detail::tfrecord_limit)
          throw refuse(fmt::format("has {} bytes, at most {} are read", size, detail::tfrecord_limit));
        if (size > left - detail::tfrecord_around)
          throw refuse(fmt::format("has {} bytes, and the file ends after {} more", size,
                                   left - detail::tfrecord_around));
        f.records.push_back(at);
        heads.expect(size);
        at += size + detail::tfrecord_around;
      }
    } catch (data_error const& e) {
      if (!options.skip_damaged) throw;
      damage_.push_back(
          fmt::format("{}; {} of the file's {} bytes are left out", e.what(), in.size() - at, in.size()));
    }
    if (f.records.empty()) continue;
    f.records.push_back(at);
    shards_.push_back({path.substr(path.find_last_of('/') + 1), f.records.size() - 1});
    files_.push_back(std::move(f));
  }
}

EDL_INLINE std::unique_ptr<reader> tfrecord_source::open() const {
  return std::make_unique<detail::tfrecord_reader>(*this);
}

EDL_INLINE std::uint64_t tfrecord_source::digest(std::size_t shard) const {
  if (shard >= files_.size()) return 0;
  detail::content_digest sum;
  sum.add(detail::digest_of(detail::input_file(files_[shard].path)));
  for (std::uint64_t const at : files_[shard].records) sum.add(at);
  return sum.value();
}

}  // namespace edl::data
