// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/tfrecord.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
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

/// Heads in ascending order; where they lie near each other, many are read at once.
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

  /// Of the record before: to read what lies between large ones would be for nothing.
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
      throw data_error(fmt::format("there is no shard {}, only {}", shard, from_.files_.size()));
    auto const& [path, records] = from_.files_[shard];
    if (record + 1 >= records.size())
      throw data_error(fmt::format("{}: there is no record {}, it has {}", path, record, records.size() - 1));
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
