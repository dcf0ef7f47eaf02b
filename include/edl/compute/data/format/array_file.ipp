// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::uint64_t idx_limit = 1ull << 30;

inline std::uint32_t big_endian(std::string_view four) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(four[std::size_t(i)]);
  return value;
}

class idx_reader final : public reader {
 public:
  idx_reader(idx_values const& images, idx_values const& labels, std::string const& name)
      : images_(images), labels_(labels), name_(name), pixels_(images.values.size() / labels.values.size()) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard != 0 || record >= labels_.values.size())
      throw data_error(
          fmt::format("{}: no record {}: the file has {}", name_, record, labels_.values.size()));
    example_builder build{into};
    auto const from = std::string_view(images_.values).substr(std::size_t(record) * pixels_, pixels_);
    std::transform(from.begin(), from.end(), build.floats("image", pixels_).begin(),
                   [](char c) { return float(static_cast<unsigned char>(c)); });
    build.integer("label", static_cast<unsigned char>(labels_.values[std::size_t(record)]));
  }

 private:
  idx_values const& images_;
  idx_values const& labels_;
  std::string const& name_;
  std::size_t pixels_;
};

/// The values of an IDX file, including its header, decompressed.
EDL_INLINE std::string unpacked_idx(std::string const& path) {
  std::string all = read_all(path, idx_limit);
  if (all.size() < 2 || all[0] != '\x1f' || all[1] != '\x8b') return all;
  std::string unpacked;
  try {
    unpack_gzip(all, idx_limit, unpacked);
  } catch (data_error const& e) {
    throw data_error(fmt::format("{}: {}", path, e.what()));
  }
  return unpacked;
}

}  // namespace detail

EDL_INLINE idx_values read_idx(std::string const& path) {
  std::string all = detail::unpacked_idx(path);
  auto const refuse = [&](std::string const& what) { return data_error(fmt::format("{}: {}", path, what)); };
  if (all.size() < 4 || all[0] != 0 || all[1] != 0)
    throw refuse(fmt::format("expected an IDX magic number 0x00000801 to 0x00000804 at byte 0, found {}",
                             all.size() < 4 ? std::string("the end of the file")
                                            : fmt::format("{:#010x}", detail::big_endian(all))));
  if (all[2] != 8)
    throw refuse(fmt::format("expected values of type 0x08 (unsigned bytes), found {:#04x}", all[2]));
  std::size_t const rank = static_cast<unsigned char>(all[3]);
  if (rank < 1 || rank > 4) throw refuse(fmt::format("expected 1 to 4 dimensions, found {}", rank));
  std::size_t const header = 4 + 4 * rank;
  if (all.size() < header)
    throw refuse(fmt::format("ends within its header, after {} of {} bytes", all.size(), header));
  idx_values v;
  std::uint64_t size = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    v.dims.push_back(detail::big_endian(std::string_view(all).substr(4 + 4 * i)));
    size *= v.dims.back();
    if (size > detail::idx_limit)
      throw refuse(fmt::format("its dimensions make more than {} bytes", detail::idx_limit));
  }
  if (size != all.size() - header)
    throw refuse(
        fmt::format("expected {} bytes of values by its dimensions, found {}", size, all.size() - header));
  v.values = std::move(all);
  v.values.erase(0, header);
  return v;
}

EDL_INLINE idx_source::idx_source(std::string const& images, std::string const& labels)
    : images_(read_idx(images)), labels_(read_idx(labels)) {
  if (images_.dims.size() < 2)
    throw data_error(
        fmt::format("{}: expected images (2 to 4 dimensions), found {}", images, images_.dims.size()));
  if (labels_.dims.size() != 1)
    throw data_error(fmt::format("{}: expected labels (1 dimension), found {}", labels, labels_.dims.size()));
  if (images_.dims[0] != labels_.dims[0])
    throw data_error(fmt::format("{}: has {} labels for {} images in {}", labels, labels_.dims[0],
                                 images_.dims[0], images));
  if (images_.values.empty()) throw data_error(fmt::format("{}: holds no images", images));
  shards_.push_back({images.substr(images.find_last_of('/') + 1), labels_.dims[0]});
}

EDL_INLINE std::unique_ptr<reader> idx_source::open() const {
  return std::make_unique<detail::idx_reader>(images_, labels_, shards_[0].name);
}

EDL_INLINE std::uint64_t idx_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  for (idx_values const* part : {&images_, &labels_}) {
    for (std::uint32_t const extent : part->dims) sum.add(std::uint64_t{extent});
    sum.add(part->values);
  }
  return sum.value();
}

namespace detail {

inline constexpr std::size_t cifar10_plane = 32 * 32, cifar10_record = 1 + 3 * cifar10_plane;

class cifar10_reader final : public reader {
 public:
  explicit cifar10_reader(std::vector<input_file> const& files) : files_(files) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= files_.size())
      throw data_error(fmt::format("no shard {}: the data has only {}", shard, files_.size()));
    auto const& file = files_[shard];
    if (record >= file.size() / cifar10_record)
      throw data_error(fmt::format("{}: no record {}: the file has {}", file.path(), record,
                                   file.size() / cifar10_record));
    auto const at = record * cifar10_record;
    file.read(at, bytes_.data(), bytes_.size());
    file.check_unchanged();
    if (bytes_[0] > 9)
      throw data_error(fmt::format("{}: record {} at byte {}: expected a label from 0 to 9, found {}",
                                   file.path(), record, at, bytes_[0]));
    example_builder build{into};
    auto const image = build.floats("image", 3 * cifar10_plane);
    for (std::size_t i = 0; i < cifar10_plane; ++i)
      for (std::size_t c = 0; c < 3; ++c) image[3 * i + c] = float(bytes_[1 + c * cifar10_plane + i]);
    build.integer("label", bytes_[0]);
  }

 private:
  std::vector<input_file> const& files_;
  std::array<unsigned char, cifar10_record> bytes_{};
};

}  // namespace detail

EDL_INLINE cifar10_source::cifar10_source(std::vector<std::string> const& paths) {
  for (auto const& path : paths) {
    auto const& file = files_.emplace_back(path);
    if (file.size() == 0 || file.size() % detail::cifar10_record != 0)
      throw data_error(fmt::format("{}: expected records of {} bytes, {} bytes are {} of them and {} more",
                                   path, detail::cifar10_record, file.size(),
                                   file.size() / detail::cifar10_record,
                                   file.size() % detail::cifar10_record));
    shards_.push_back({path.substr(path.find_last_of('/') + 1), file.size() / detail::cifar10_record});
  }
}

EDL_INLINE std::unique_ptr<reader> cifar10_source::open() const {
  return std::make_unique<detail::cifar10_reader>(files_);
}

EDL_INLINE std::uint64_t cifar10_source::digest(std::size_t shard) const {
  return shard < files_.size() ? detail::digest_of(files_[shard]) : 0;
}

namespace detail {

inline constexpr std::uint64_t npz_limit = 1ull << 30;
inline constexpr std::size_t npz_arrays = 1024;

/// The header's text: a Python dictionary with three keys, as numpy.lib.format writes it.
class npy_dictionary {
 public:
  explicit npy_dictionary(std::string_view text) : text_(text) {}

  void read(npy_header& into) {
    bool type = false, order = false, shape = false;
    need('{');
    while (!accept('}')) {
      auto const key = quoted();
      need(':');
      if (key == "descr") {
        type = true;
        read_type(quoted(), into);
      } else if (key == "fortran_order") {
        order = true;
        if (!word("False")) {
          if (!word("True")) refuse();
          throw data_error("is in Fortran's order; save numpy.ascontiguousarray(a)");
        }
      } else if (key == "shape") {
        shape = true;
        read_shape(into);
      } else {
        refuse();
      }
      if (!accept(',')) {
        need('}');
        break;
      }
    }
    if (!type || !order || !shape) refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw data_error("has no header of an .npy file"); }

  void blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  bool word(std::string_view w) {
    blanks();
    if (!text_.starts_with(w)) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool accept(char c) { return word({&c, 1}); }
  void need(char c) {
    if (!accept(c)) refuse();
  }
  std::string_view quoted() {
    blanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) {
      if (text_.starts_with('[')) throw data_error("has records of several types; save each as an array");
      refuse();
    }
    auto const end = text_.find(text_[0], 1);
    if (end == text_.npos) refuse();
    auto const inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  static void read_type(std::string_view type, npy_header& into) {
    if (type.size() == 3) {
      into.kind = type[1];
      into.width = std::size_t(type[2] - '0');
      bool const one = into.width == 1,
                 numbers = one || into.width == 2 || into.width == 4 || into.width == 8;
      bool const known = (into.kind == 'f' && into.width >= 4 && numbers) ||
                         ((into.kind == 'i' || into.kind == 'u') && numbers) || (into.kind == 'b' && one);
      if (known && (type[0] == '<' || (one && type[0] == '|'))) return;
      if (known && type[0] == '>')
        throw data_error("has its numbers big end first; save a.astype(a.dtype.newbyteorder('<'))");
    }
    auto const shown = edl::printable(type, 64);
    char const what = type.size() > 1 ? type[1] : '?';
    throw data_error(fmt::format("has values of type '{}'; {}", shown,
                                 what == 'c'   ? "save a.real and a.imag, each as an array"
                                 : what == 'M' ? "save seconds: (a - a.min()) / numpy.timedelta64(1, 's')"
                                 : what == 'm' ? "save seconds: a / numpy.timedelta64(1, 's')"
                                 : what == 'U' || what == 'S' || what == 'O' || what == 'V'
                                     ? "save texts as a column of a CSV file or as JSON lines"
                                 : what == 'f' ? "save a.astype('float32') or a.astype('float64')"
                                               : "save a.astype('float32') or a.astype('int64')"));
  }

  void read_shape(npy_header& into) {
    need('(');
    while (!accept(')')) {
      blanks();
      std::uint64_t extent = 0;
      auto const [end, failed] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (failed != std::errc{} || into.extents.size() == 32) refuse();
      text_.remove_prefix(std::size_t(end - text_.data()));
      into.extents.push_back(extent);
      if (!accept(',')) {
        need(')');
        break;
      }
    }
  }

  std::string_view text_;
};

EDL_INLINE std::uint64_t npy_header::values() const {
  std::uint64_t n = 1;
  for (std::size_t i = 1; i < extents.size(); ++i) n *= extents[i];
  return n;
}

EDL_INLINE npy_header read_npy_header(std::string_view first, std::uint64_t file_size) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view magic = "\x93NUMPY";
  if (!first.starts_with(magic) || first.size() < 12) throw data_error("is no .npy file");
  int const version = static_cast<unsigned char>(first[6]);
  if (version < 1 || version > 3)
    throw data_error(fmt::format("has the unknown version {} of .npy", version));
  std::size_t const at = version == 1 ? 10 : 12;
  std::uint32_t size = 0;
  std::memcpy(&size, first.data() + 8, version == 1 ? 2 : 4);
  npy_header h;
  if (size > most_npy_header - at || at + size > first.size())
    throw data_error(
        fmt::format("has a header of {} bytes, which it does not hold or which is too long", size));
  h.begin = at + size;
  npy_dictionary(first.substr(at, size)).read(h);
  if (h.extents.empty()) throw data_error("is a single number; its first axis should count the records");
  bool const none = std::ranges::find(h.extents, std::uint64_t{0}) != h.extents.end();
  std::uint64_t left = (file_size - h.begin) / h.width;
  for (std::uint64_t const extent : h.extents) {
    if (!none && left / extent == 0)
      throw data_error(fmt::format("its shape has more values than the {} bytes of the file", file_size));
    left /= std::max<std::uint64_t>(extent, 1);
  }
  if (h.extents[0] * h.values() * h.width != file_size - h.begin)
    throw data_error(fmt::format("its shape needs {} bytes, but the file has {}",
                                 h.extents[0] * h.values() * h.width, file_size - h.begin));
  return h;
}

template <class From, class To>
void spread(std::string_view bytes, std::span<To> into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    into[i] = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): int8 is a number here
  }
}

class numpy_reader final : public reader {
 public:
  explicit numpy_reader(numpy_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& all = from_.arrays_;
    if (shard != 0 || record >= from_.shards_[0].records)
      throw data_error(fmt::format("{}: no record {}: the file has {}", from_.shards_[0].name, record,
                                   from_.shards_[0].records));
    if (from_.packed_) from_.packed_->check_unchanged();
    example_builder build{into};
    for (auto const& a : all) {
      auto const& h = a.header;
      auto const values = std::size_t(h.values()), size = values * h.width;
      std::uint64_t const at = h.begin + record * size;
      std::string_view bytes;
      if (a.bytes.empty()) {
        bytes_.resize(size);
        a.file.read(at, bytes_.data(), size);
        a.file.check_unchanged();
        bytes = bytes_;
      } else {
        bytes = std::string_view(a.bytes).substr(std::size_t(at), size);
      }
      if (h.kind == 'f')
        h.width == 4 ? spread<float>(bytes, build.floats(a.name, values))
                     : spread<double>(bytes, build.floats(a.name, values));
      else
        integers(a, record, bytes, build.integers(a.name, values));
      if (h.extents.size() > 2) build.extents(view<std::uint64_t>(h.extents).subspan(1));
    }
  }

 private:
  template <class Array>
  static void integers(Array const& a, std::uint64_t record, std::string_view bytes,
                       std::span<std::int64_t> into) {
    bool const negative = a.header.kind == 'i';
    switch (a.header.width) {
      case 1:
        return negative ? spread<std::int8_t>(bytes, into) : spread<std::uint8_t>(bytes, into);
      case 2:
        return negative ? spread<std::int16_t>(bytes, into) : spread<std::uint16_t>(bytes, into);
      case 4:
        return negative ? spread<std::int32_t>(bytes, into) : spread<std::uint32_t>(bytes, into);
      default:
        spread<std::int64_t>(bytes, into);
        if (!negative && std::ranges::any_of(into, [](std::int64_t v) { return v < 0; }))
          throw data_error(fmt::format("{}: record {} has a number above {}", a.path, record,
                                       std::numeric_limits<std::int64_t>::max()));
    }
  }

  numpy_source const& from_;
  std::string bytes_;
};

/// An archive of libzip, opened read-only.
struct zip_archive {
  ::zip_t* handle = nullptr;
  ~zip_archive() {
    if (handle) ::zip_discard(handle);
  }
};
struct zip_member {
  ::zip_file_t* handle = nullptr;
  ~zip_member() {
    if (handle) ::zip_fclose(handle);
  }
};

inline std::string last_part(std::string const& path) { return path.substr(path.find_last_of('/') + 1); }
inline std::string array_name(std::string const& file) {
  auto const name = last_part(file);
  return ends_as(name, ".npy") ? name.substr(0, name.size() - 4) : name;
}

}  // namespace detail

EDL_INLINE numpy_source::numpy_source(std::vector<std::string> const& paths) {
  for (auto const& path : paths) {
    if (detail::ends_as(path, ".npz")) {
      open_npz(path);
      continue;
    }
    array a{detail::array_name(path), path, {}, detail::input_file(path), {}};
    std::string first(std::size_t(std::min<std::uint64_t>(a.file.size(), detail::most_npy_header)), '\0');
    a.file.read(0, first.data(), first.size());
    add(first, std::move(a));
  }
  if (arrays_.empty()) throw data_error(fmt::format("{}: has no arrays", paths.empty() ? "" : paths.front()));
  auto const& path = paths.front();
  auto const slash = path.find_last_of('/');
  bool const several = paths.size() > 1 && slash != path.npos;
  shards_.push_back(
      {detail::last_part(several ? path.substr(0, slash) : path), arrays_[0].header.extents[0]});
}

EDL_INLINE void numpy_source::add(std::string const& first, array a) {
  try {
    a.header = detail::read_npy_header(first, a.bytes.empty() ? a.file.size() : a.bytes.size());
  } catch (data_error const& e) {
    throw data_error(fmt::format("{}: {}", a.path, e.what()));
  }
  for (array const& other : arrays_) {
    if (other.name == a.name)
      throw data_error(fmt::format("{} and {}: two arrays have one name", other.path, a.path));
    if (other.header.extents[0] != a.header.extents[0])
      throw data_error(fmt::format("{}: has {} records, and {} has {}", a.path, a.header.extents[0],
                                   other.path, other.header.extents[0]));
  }
  arrays_.push_back(std::move(a));
}

EDL_INLINE void numpy_source::open_npz(std::string const& path) {
  packed_ = std::make_unique<detail::input_file>(path);
  auto const refuse = [&](std::string const& what) { return data_error(fmt::format("{}: {}", path, what)); };
  int code = 0;
  detail::zip_archive const zip{::zip_open(path.c_str(), ZIP_RDONLY, &code)};
  if (!zip.handle && code == ZIP_ER_OPEN) throw refuse("cannot be opened: " + detail::reason(errno));
  if (!zip.handle) throw refuse("is no .npz file: it cannot be opened as a ZIP archive");
  auto const members = ::zip_get_num_entries(zip.handle, 0);
  if (members < 1 || std::uint64_t(members) > detail::npz_arrays)
    throw refuse(fmt::format("has {} arrays; 1 to {} are read", members, detail::npz_arrays));
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < std::uint64_t(members); ++i) {
    ::zip_stat_t of;
    ::zip_stat_init(&of);
    if (::zip_stat_index(zip.handle, i, 0, &of) != 0 || (of.valid & ZIP_STAT_SIZE) == 0 ||
        (of.valid & ZIP_STAT_NAME) == 0 || (of.valid & ZIP_STAT_COMP_SIZE) == 0)
      throw refuse(fmt::format("member {} cannot be read", i));
    std::string const name = of.name, shown = fmt::format("{}:{}", path, edl::printable(name, 64));
    // A byte of a deflated stream expands to at most 1,032 bytes.
    if (of.size > detail::npz_limit - all || of.size / 1032 > of.comp_size + 16)
      throw refuse(
          fmt::format("its arrays have more than {} bytes, or more than they can have; save each as an "
                      ".npy file",
                      detail::npz_limit));
    all += of.size;
    detail::zip_member const in{::zip_fopen_index(zip.handle, i, 0)};
    array a{detail::array_name(name), shown, {}, {}, std::string(std::size_t(of.size), '\0')};
    if (!in.handle || ::zip_fread(in.handle, a.bytes.data(), of.size) != ::zip_int64_t(of.size))
      throw data_error(fmt::format("{}: is damaged: it cannot be unpacked", shown));
    char more = 0;
    if (::zip_fread(in.handle, &more, 1) != 0)  // the end: its checksum was compared
      throw data_error(
          fmt::format("{}: is damaged: its checksum is wrong, or it is longer than its header gives", shown));
    std::string const first = a.bytes.substr(0, detail::most_npy_header);
    if (a.bytes.empty()) throw data_error(fmt::format("{}: is no .npy file", shown));
    add(first, std::move(a));
  }
}

EDL_INLINE std::unique_ptr<reader> numpy_source::open() const {
  return std::make_unique<detail::numpy_reader>(*this);
}

EDL_INLINE std::uint64_t numpy_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  if (packed_) sum.add(detail::digest_of(*packed_));
  for (array const& a : arrays_) {
    sum.add(a.name);
    if (a.bytes.empty()) sum.add(detail::digest_of(a.file));
  }
  return sum.value();
}

}  // namespace edl::data
