// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"

namespace edl::checkpoint {
namespace detail {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

inline constexpr std::size_t most_dims = 64;

EDL_INLINE std::string shown(std::string_view name) {
  std::string text = shortened(name, 200);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

/// Parses a header's JSON incrementally. It stores nothing outside the format, so neither depth nor repeated
/// names cost memory.
class header_reader {
 public:
  header_reader(std::string const& path, std::vector<tensor>& tensors,
                std::map<std::string, std::string>& metadata)
      : path_(path), tensors_(tensors), metadata_(metadata) {}

  bool start_object(std::size_t) {
    if (depth_ == 0 || (depth_ == 1 && !array_)) {
      ++depth_;
      has_ = {};
      return true;
    }
    fail("has an unexpected object");
  }

  bool key(std::string& name) {
    if (depth_ == 1) {
      name_ = name;
      in_metadata_ = name == "__metadata__";
      if (in_metadata_ && std::exchange(seen_metadata_, true)) fail("has __metadata__ twice");
      if (!in_metadata_) tensors_.push_back({.name = name, .dtype = {}, .dims = {}});
    } else if (in_metadata_) {
      field_ = name;
    } else {
      static constexpr std::array<std::string_view, 3> names{"dtype", "shape", "data_offsets"};
      auto const it = std::find(names.begin(), names.end(), name);
      if (it == names.end()) fail(fmt::format("has a field '{}'", shown(name)));
      which_ = std::size_t(it - names.begin());
      if (std::exchange(has_[which_], true)) fail(fmt::format("has {} twice", name));
    }
    return true;
  }

  bool end_object() {
    if (depth_ == 2 && !in_metadata_ && !(has_[0] && has_[1] && has_[2] && offsets_ == 2))
      fail("lacks dtype, shape or two data_offsets");
    offsets_ = 0;
    --depth_;
    return true;
  }

  bool string(std::string& value) {
    if (depth_ != 2 || array_ || (!in_metadata_ && which_ != 0)) fail("has an unexpected string");
    if (!in_metadata_)
      tensors_.back().dtype = value;
    else if (!metadata_.emplace(field_, value).second)
      fail(fmt::format("has '{}' twice", shown(field_)));
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || array_ || in_metadata_ || which_ == 0) fail("has an unexpected list");
    return array_ = true;
  }

  bool end_array() {
    array_ = false;
    return true;
  }

  bool number_unsigned(std::uint64_t value) {
    if (!array_) fail("has an unexpected number");
    tensor& t = tensors_.back();
    if (which_ == 1) {
      if (t.dims.size() == most_dims) fail(fmt::format("has more than {} dimensions", most_dims));
      t.dims.push_back(value);
    } else {
      if (offsets_ == 2) fail("has more than two data_offsets");
      (offsets_++ == 0 ? t.begin : t.end) = value;
    }
    return true;
  }

  bool number_integer(std::int64_t) { fail("has a negative number"); }
  bool number_float(double, std::string const&) { fail("has a number that is not whole"); }
  bool boolean(bool) { fail("has an unexpected boolean"); }
  bool null() { fail("has an unexpected null"); }
  bool binary(std::vector<std::uint8_t>&) { fail("has unexpected bytes"); }

  bool parse_error(std::size_t position, std::string const&, nlohmann::detail::exception const&) {
    throw error(fmt::format("the header of {} is not JSON at byte {}", path_, 7 + position));
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw error(fmt::format("the header of {} is not that of a safetensors file: '{}' {}", path_,
                            shown(name_), what));
  }

  std::string const& path_;
  std::vector<tensor>& tensors_;
  std::map<std::string, std::string>& metadata_;
  std::string name_, field_;
  int depth_ = 0;
  bool array_ = false, in_metadata_ = false, seen_metadata_ = false;
  std::size_t which_ = 0, offsets_ = 0;
  std::array<bool, 3> has_{};
};

/// Bytes of a tensor with these extents and dtype; nothing if that does not fit 64 bits.
EDL_INLINE std::optional<std::uint64_t> tensor_bytes(std::string_view dtype,
                                                     std::vector<std::uint64_t> const& dims) {
  std::uint64_t size = element_bytes(dtype);
  if (std::find(dims.begin(), dims.end(), 0u) != dims.end()) return 0;
  for (std::uint64_t d : dims)
    if (__builtin_mul_overflow(size, d, &size)) return std::nullopt;
  return size;
}

EDL_INLINE void check_tensors(std::string const& path, std::vector<tensor>& tensors,
                              std::uint64_t data_bytes) {
  std::vector<tensor const*> by_offset;
  for (tensor const& t : tensors) {
    std::string const where = fmt::format("tensor '{}' of {}", shown(t.name), path);
    if (element_bytes(t.dtype) == 0)
      throw error(fmt::format("{} has the unknown dtype '{}'", where, shown(t.dtype)));
    if (t.begin > t.end || t.end > data_bytes)
      throw error(fmt::format("{} claims bytes [{}, {}) of {}", where, t.begin, t.end, data_bytes));
    auto const size = tensor_bytes(t.dtype, t.dims);
    if (!size || *size != t.end - t.begin)
      throw error(fmt::format("{} has {} bytes, but its shape and {} need {}", where, t.end - t.begin,
                              t.dtype, size ? std::to_string(*size) : "more than a file can hold"));
    by_offset.push_back(&t);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](tensor const* a, tensor const* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t end = 0;
  for (tensor const* t : by_offset) {
    if (t->begin != end)
      throw error(fmt::format("tensor '{}' of {} begins at byte {}, but the one before it ends at {}",
                              shown(t->name), path, t->begin, end));
    end = t->end;
  }
  if (end != data_bytes)
    throw error(fmt::format("{} has {} bytes of data, but its tensors end at {}", path, data_bytes, end));
  std::sort(tensors.begin(), tensors.end(), [](tensor const& a, tensor const& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].name == tensors[i - 1].name)
      throw error(fmt::format("{} has two tensors '{}'", path, shown(tensors[i].name)));
}

EDL_INLINE std::string json_text(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (nlohmann::json::exception const&) {
    throw error(fmt::format("'{}' is not UTF-8, which a safetensors file requires", shown(text)));
  }
}

}  // namespace detail

EDL_INLINE std::size_t element_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 17> sizes{{
      {"BOOL", 1},
      {"U8", 1},
      {"I8", 1},
      {"F8_E5M2", 1},
      {"F8_E4M3", 1},
      {"F8_E8M0", 1},
      {"I16", 2},
      {"U16", 2},
      {"F16", 2},
      {"BF16", 2},
      {"I32", 4},
      {"U32", 4},
      {"F32", 4},
      {"C64", 8},
      {"F64", 8},
      {"I64", 8},
      {"U64", 8},
  }};
  for (auto const& [name, size] : sizes)
    if (name == dtype) return size;
  return 0;
}

EDL_INLINE void write_safetensors(durable_file& file, std::span<tensor_source const> tensors,
                                  std::map<std::string, std::string> const& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (auto const& [key, value] : metadata)
      header += fmt::format("{}{}:{}", header.back() == '{' ? "" : ",", detail::json_text(key),
                            detail::json_text(value));
    header += '}';
  }
  std::set<std::string_view> names{"__metadata__"};
  std::uint64_t at = 0;
  for (tensor_source const& t : tensors) {
    if (!names.insert(t.name).second)
      throw error(fmt::format("two tensors would be named '{}'", detail::shown(t.name)));
    auto const size = detail::tensor_bytes(t.dtype, t.dims);
    if (element_bytes(t.dtype) == 0 || !size || (!t.stream && *size != t.data.size()))
      throw error(fmt::format("{} bytes do not match the shape of tensor '{}'", t.data.size(),
                              detail::shown(t.name)));
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() == 1 ? "" : ",", detail::json_text(t.name), t.dtype,
                          fmt::join(t.dims, ","), at, at + *size);
    at += *size;
  }
  header += '}';
  header.append((64 - (8 + header.size()) % 64) % 64, ' ');
  if (header.size() > longest_safetensors_header)
    throw error(fmt::format("{} tensors need a header of {} bytes, but a safetensors file has at most {}",
                            tensors.size(), header.size(), longest_safetensors_header));
  std::uint64_t const length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (tensor_source const& t : tensors) {
    std::uint64_t const end = file.size() + *detail::tensor_bytes(t.dtype, t.dims);
    if (t.stream)
      t.stream([&](bytes piece) { file.write(piece); });
    else
      file.write(t.data);
    if (file.size() != end)
      throw error(fmt::format("tensor '{}' is {} bytes too {}", detail::shown(t.name),
                              std::max(file.size(), end) - std::min(file.size(), end),
                              file.size() < end ? "short" : "long"));
  }
}

EDL_INLINE safetensors_file::safetensors_file(std::string path) : file_(std::move(path)) {
  file_.path().ends_with(index_ending) ? read_index() : read_header();
}

EDL_INLINE void safetensors_file::read_index() {
  auto const fail = [&](std::string const& what) { throw error(fmt::format("{} {}", file_.path(), what)); };
  if (file_.size() > longest_safetensors_header)
    fail(fmt::format("has {} bytes; an index has at most {}", file_.size(), longest_safetensors_header));
  std::string text(std::size_t(file_.size()), '\0');
  file_.read(0, std::as_writable_bytes(std::span(text)));
  auto const all = parse_json(text);
  if (all.is_discarded()) fail("is " + why_no_json(text));
  auto const map = all.is_object() ? all.find("weight_map") : all.end();
  if (map == all.end() || !map->is_object() || map->empty())
    fail("has no 'weight_map', an object with the file of each tensor");
  std::map<std::string, std::size_t> opened;  // by name
  for (auto const& [name, file] : map->items()) {
    std::string const in = file.is_string() ? file.get<std::string>() : "";
    if (in.empty() || in.find('/') != in.npos || !in.ends_with(".safetensors"))
      fail(fmt::format("gives tensor '{}' no .safetensors file beside it, but {}", detail::shown(name),
                       detail::shown(file.dump())));
    auto const [at, fresh] = opened.try_emplace(in, parts_.size());
    if (parts_.size() == most_parts && fresh) fail(fmt::format("names more than {} files", most_parts));
    if (fresh) parts_.emplace_back(file_.path().substr(0, file_.path().rfind('/') + 1) + in);
    tensor const* const found = parts_[at->second].find(name);
    if (!found)
      fail(fmt::format("has tensor '{}' in {}, which does not have it", detail::shown(name),
                       detail::shown(in)));
    tensors_.push_back(*found);
    tensors_.back().part = at->second;
  }
  std::size_t there = 0;
  for (safetensors_file const& p : parts_) there += p.tensors().size();
  if (there != tensors_.size())
    fail(fmt::format("names {}, but its {} has {}", counted(tensors_.size(), "tensor"),
                     counted(parts_.size(), "file"), there));
  std::ranges::sort(tensors_, {}, &tensor::name);
}

EDL_INLINE void safetensors_file::read_header() {
  std::uint64_t length = 0;
  if (file_.size() < sizeof length)
    throw error(fmt::format("{} has {} bytes, too few for a safetensors file", file_.path(), file_.size()));
  file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > longest_safetensors_header || length > file_.size() - sizeof length)
    throw error(fmt::format("{} claims a header of {} bytes; the file has {}, the format allows {}",
                            file_.path(), length, file_.size(), longest_safetensors_header));
  std::string header(std::size_t(length), '\0');
  file_.read(sizeof length, std::as_writable_bytes(std::span(header)));
  if (!header.starts_with('{'))
    throw error(fmt::format("the header of {} does not begin with '{{'", file_.path()));
  detail::header_reader reader(file_.path(), tensors_, metadata_);
  nlohmann::json::sax_parse(header, &reader);
  data_ = sizeof length + length;
  detail::check_tensors(file_.path(), tensors_, file_.size() - data_);
}

EDL_INLINE tensor const* safetensors_file::find(std::string_view name) const {
  auto const it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](tensor const& t, std::string_view n) { return t.name < n; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

EDL_INLINE void safetensors_file::read(tensor const& t, std::uint64_t offset,
                                       std::span<std::byte> into) const {
  if (offset > t.end - t.begin || into.size() > t.end - t.begin - offset)
    throw error(fmt::format("tensor '{}' of {} has no bytes [{}, {})", detail::shown(t.name), path(), offset,
                            offset + into.size()));
  parts_.empty() ? file_.read(data_ + t.begin + offset, into) : parts_[t.part].read(t, offset, into);
}

}  // namespace edl::checkpoint
