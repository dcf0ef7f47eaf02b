// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/format/web_dataset.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t tar_block = 512, tar_name_limit = 64u << 10, tar_member_limit = 256u << 20;

/// A number in a header: octal digits, or big-endian binary if the first bit is set.
inline std::optional<std::uint64_t> tar_number(std::string_view field) {
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    std::uint64_t n = 0;
    for (char const c : field.substr(field.size() - 8)) n = n << 8 | static_cast<unsigned char>(c);
    auto const more = field.substr(1, field.size() - 9);
    return more.find_first_not_of('\0') == more.npos ? std::optional(n) : std::nullopt;
  }
  auto const digits = trimmed(field.substr(0, std::min(field.find('\0'), field.size())));
  return digits.empty() ? std::uint64_t{0} : number_from<std::uint64_t>(digits, 8);
}

inline std::string tar_text(std::string_view field) {
  return std::string(field.substr(0, std::min(field.find('\0'), field.size())));
}

/// The value of a key in the records `length key=value\n` of an extended header, the last one if there are
/// several; nothing if they are malformed.
inline std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  std::optional<std::string> found;
  while (!records.empty()) {
    auto const blank = std::min(records.find(' '), records.size());
    auto const length = number_from<std::size_t>(records.substr(0, blank));
    if (!length || *length > records.size() || *length < blank + 2) return std::string();
    auto const one = records.substr(blank + 1, *length - blank - 2);
    if (one.starts_with(key) && one.substr(key.size()).starts_with('=')) found = one.substr(key.size() + 1);
    records.remove_prefix(*length);
  }
  return found;
}

/// Whether files with this ending are pictures that are decoded.
inline bool shows_picture(std::string_view ending) {
  return ending.find('.') == ending.npos && names_picture("x." + std::string(ending));
}

struct tar_member {
  std::string name;
  std::uint64_t begin = 0, size = 0;  // of its bytes
  bool file = true;                   // not a link or a device
};

/// Walks from header to header, and calls `take(member)` for all members except directories.
template <class Take>
void walk_tar(input_file const& file, Take&& take) {
  std::string head(tar_block, '\0'), extension;
  auto const field = [&](std::size_t begin, std::size_t size) {
    return std::string_view(head).substr(begin, size);
  };
  std::optional<std::string> long_name;
  std::optional<std::uint64_t> long_size;
  bool ended = false;
  for (std::uint64_t at = 0; at < file.size();) {
    auto const refuse = [&](std::string const& what) {
      return data_error(fmt::format("{}: byte {}: {}", file.path(), at, what));
    };
    if (file.size() - at < tar_block) throw refuse("ends within a header of tar; it may be cut off");
    file.read(at, head.data(), head.size());
    // Blocks of zeros end an archive; another archive may follow.
    ended = head.find_first_not_of('\0') == head.npos;
    if (ended) {
      at += tar_block;
      continue;
    }
    std::uint64_t sum = 8 * ' ';  // the checksum field itself counts as blanks
    for (std::size_t i = 0; i < head.size(); ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(head[i]);
    if (tar_number(field(148, 8)) != sum)
      throw refuse(at == 0 ? "is not a tar header; unpack the archive first if it is compressed"
                           : "is not a tar header: its checksum is wrong");
    char const type = head[156] == '\0' ? '0' : head[156];
    bool const about_next = type == 'L' || type == 'x', about_all = type == 'g' || type == 'K';
    auto const said = !about_next && long_size ? long_size : tar_number(field(124, 12));
    if (!said || *said > file.size() - at - tar_block)
      throw refuse("claims more bytes than the archive has; it may be truncated");
    std::uint64_t const begin = at + tar_block;
    if (about_next) {
      if (*said > tar_name_limit) throw refuse(fmt::format("claims a name of {} bytes", *said));
      extension.resize(std::size_t(*said));
      file.read(begin, extension.data(), extension.size());
      if (type == 'L') {
        long_name = tar_text(extension);
      } else {
        auto name = pax_value(extension, "path");
        auto const size = pax_value(extension, "size");
        if (size) long_size = number_from<std::uint64_t>(*size);
        if ((name && name->empty()) || (size && !long_size))
          throw refuse("is an extended header that is malformed");
        if (name) long_name = std::move(name);
      }
    } else if (!about_all) {
      std::string name = tar_text(field(0, 100));
      if (auto const prefix = tar_text(field(345, 155));
          field(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty())
        name = prefix + "/" + name;
      if (long_name) name = std::move(*long_name);
      long_name.reset(), long_size.reset();
      if (type != '5') take(tar_member{std::move(name), begin, *said, type == '0'});
    }
    at = begin + *said + (tar_block - *said % tar_block) % tar_block;
  }
  if (!ended)
    throw data_error(fmt::format("{}: has no end as archives of tar have; it may be cut off", file.path()));
}

class web_dataset_reader final : public reader {
 public:
  explicit web_dataset_reader(web_dataset const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= from_.archives_.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, from_.archives_.size()));
    auto const& a = from_.archives_[shard];
    if (record >= a.ends.size())
      throw data_error(fmt::format("{}: no record {}: the file has {}", a.path, record, a.ends.size()));
    if (!file_ || open_ != shard) {
      file_.emplace(a.path);
      open_ = shard;
      if (file_->size() != a.size)
        throw changed_error(
            fmt::format("{}: has {} bytes but had {} when it was opened; start again on the new file", a.path,
                        file_->size(), a.size));
    }
    auto const i = std::size_t(record);
    std::size_t const begin = i > 0 ? a.key_ends[i - 1] : 0;
    auto const key = std::string_view(a.keys).substr(begin, a.key_ends[i] - begin);
    example_builder build{into};
    build.bytes("__key__", key);
    for (std::size_t p = i > 0 ? a.ends[i - 1] : 0; p < a.ends[i]; ++p) {
      auto const& part = a.parts[p];
      std::string const& ending = from_.endings_[part.ending];
      bytes_.resize(part.size);
      file_->read(part.begin, bytes_.data(), bytes_.size());
      file_->check_unchanged();
      try {
        put(ending, build);
      } catch (data_error const& e) {
        throw data_error(fmt::format("{}: {}.{}: {}", a.path, edl::printable(key, 256),
                                     edl::printable(ending, 64), e.what()));
      }
    }
  }

 private:
  void put(std::string const& ending, example_builder& build) {
    auto const text = trimmed(bytes_);
    if (shows_picture(ending)) {
      decode_picture(bytes_, pixels_);
      std::ranges::copy(pixels_.values, build.floats("image", pixels_.values.size()).begin());
      build.integer("height", pixels_.extents.height);
      build.integer("width", pixels_.extents.width);
    } else if (ending == "cls") {
      auto const label = number_from<std::int64_t>(text);
      if (!label)
        throw data_error(fmt::format("expected a whole number, found '{}'", edl::printable(text, 64)));
      build.integer("label", *label);
    } else {
      build.bytes(ending, bytes_);
      if (auto const n = number_from<std::int64_t>(text)) build.also(*n);
      if (auto const n = number_from<double>(text)) build.also(float(*n));
    }
  }

  web_dataset const& from_;
  std::optional<input_file> file_;
  std::size_t open_ = 0;
  std::string bytes_;
  pixels pixels_;
};

}  // namespace detail

EDL_INLINE web_dataset::web_dataset(std::vector<std::string> const& paths) {
  for (std::string const& path : paths) add(path);
}

EDL_INLINE void web_dataset::add(std::string const& path) {
  constexpr std::size_t most_endings = 1024;
  detail::input_file const file(path);
  archive a{.path = path, .size = file.size(), .parts = {}, .ends = {}, .keys = {}, .key_ends = {}};
  std::string key, first_left_out;
  std::vector<std::string> features;  // of the record
  std::uint64_t left_out = 0;
  detail::walk_tar(file, [&](detail::tar_member const& m) {
    std::size_t const base = m.name.find_last_of('/') + 1, point = m.name.find('.', base);
    if (!m.file || point == m.name.npos || point == base || point + 1 == m.name.size()) {
      if (left_out++ == 0) first_left_out = m.name;
      return;
    }
    auto const refuse = [&](std::string const& what) {
      return data_error(fmt::format("{}: {}: {}", path, edl::printable(m.name, 256), what));
    };
    if (m.size > detail::tar_member_limit)
      throw refuse(fmt::format("has {} bytes, at most {} are read", m.size, detail::tar_member_limit));
    if (auto const own = std::string_view(m.name).substr(0, point); a.ends.empty() || own != key) {
      key = own;
      features = {"__key__"};
      a.keys += key;
      a.key_ends.push_back(a.keys.size());
      a.ends.push_back(a.parts.size());
    }
    auto const ending = lower(std::string_view(m.name).substr(point + 1));
    auto at = std::ranges::find(endings_, ending);
    if (at == endings_.end()) {
      if (endings_.size() == most_endings)
        throw refuse(
            fmt::format("has the extension number {}; files are named KEY.EXTENSION", most_endings + 1));
      at = endings_.insert(at, ending);
    }
    auto const claim = [&](std::string_view feature) {
      if (std::ranges::find(features, feature) != features.end())
        throw refuse(fmt::format("its record has the feature '{}' twice", edl::printable(feature, 64)));
      features.emplace_back(feature);
    };
    if (detail::shows_picture(ending))
      for (char const* const one : {"image", "height", "width"}) claim(one);
    else
      claim(ending == "cls" ? std::string_view("label") : std::string_view(*at));
    a.parts.push_back({m.begin, std::uint32_t(m.size), std::uint32_t(at - endings_.begin())});
    a.ends.back() = a.parts.size();
  });
  file.check_unchanged();
  if (left_out > 0)
    notes_.push_back(fmt::format("{}: {} left out, as links and names without an ending are; the first is {}",
                                 path, left_out == 1 ? "1 file is" : fmt::format("{} files are", left_out),
                                 edl::printable(first_left_out, 64)));
  shards_.push_back({path.substr(path.find_last_of('/') + 1), a.ends.size()});
  archives_.push_back(std::move(a));
}

EDL_INLINE std::unique_ptr<reader> web_dataset::open() const {
  return std::make_unique<detail::web_dataset_reader>(*this);
}

EDL_INLINE std::uint64_t web_dataset::digest(std::size_t shard) const {
  return shard < archives_.size() ? detail::digest_of(detail::input_file(archives_[shard].path)) : 0;
}

}  // namespace edl::data
