// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "edl/base/checkpoint/float_tensor.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/model_reader.hpp"
#include "edl/compute/sparse/hash.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::checkpoint {
namespace detail {

/// Maps the file into memory.
EDL_INLINE std::byte const* map_file(std::string const& path, std::uint64_t size) {
  auto const fail = [&](int code) {
    throw error(fmt::format("{} cannot be mapped: {}", path, std::strerror(code)));
  };
  int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(errno);
  struct stat now{};
  bool const same = ::fstat(file, &now) == 0 && std::uint64_t(now.st_size) == size;
  void* const at = same ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  int const code = same ? errno : ESTALE;  // the file was replaced after its header was read
  ::close(file);
  if (at == MAP_FAILED) fail(code);
  ::madvise(at, size, MADV_RANDOM);
  return static_cast<std::byte const*>(at);
}

}  // namespace detail

EDL_INLINE model_reader::model_reader(std::string path) : file_(path), version_(model_version(file_)) {
  constexpr std::string_view begin = "tables/", end = "/ids";
  for (tensor const& t : file_.tensors()) {
    if (!t.name.starts_with(begin) || !t.name.ends_with(end) || t.name.size() <= begin.size() + end.size())
      continue;
    table one;
    one.name = t.name.substr(begin.size(), t.name.size() - begin.size() - end.size());
    tensor const* const weights = file_.find("tables/" + one.name + "/embeddings");
    if (t.dtype != "U64" || t.dims.size() != 1 || !weights || weights->dtype != "F32" ||
        weights->dims.size() != 2 || weights->dims[0] != t.dims[0])
      throw error(fmt::format("table '{}' of {} is not one of ids and rows", detail::shown(one.name), path));
    one.rows = t.dims[0];
    one.width = std::size_t(weights->dims[1]);
    tables_.push_back(std::move(one));
  }
  if (tables_.empty()) return;
  auto const order = file_.metadata().find("row_order");
  if (order == file_.metadata().end() || order->second != rows_by_slot)
    throw error(
        fmt::format("the rows of {} are not in the order of hash slot and id: export it again", path));
  mapped_ = detail::map_file(path, file_.size());
  for (table& t : tables_) {
    t.ids = mapped_ + file_.position(*file_.find("tables/" + t.name + "/ids"));
    t.weights = mapped_ + file_.position(*file_.find("tables/" + t.name + "/embeddings"));
  }
}

EDL_INLINE model_reader::~model_reader() {
  if (mapped_) ::munmap(const_cast<std::byte*>(mapped_), file_.size());
}

EDL_INLINE model_reader::variable model_reader::read(std::string_view name) const {
  tensor const* const t = file_.find(name);
  if (!t) throw error(fmt::format("{} lacks variable '{}'", file_.path(), name));
  return {.dims = t->dims, .values = read_floats(file_, *t)};
}

EDL_INLINE model_reader::table const& model_reader::find_table(std::string_view name) const {
  auto const it = std::ranges::find(tables_, name, &table::name);
  if (it == tables_.end()) throw error(fmt::format("{} lacks table '{}'", file_.path(), name));
  return *it;
}

EDL_INLINE bool model_reader::find(table const& in, std::uint64_t id, std::span<float> to) const {
  if (to.size() != in.width)
    throw error(fmt::format("the buffer has room for {} values, but a row of table '{}' has {}", to.size(),
                            in.name, in.width));
  auto const id_at = [&](std::uint64_t row) {  // tensors need not be aligned to eight bytes
    std::uint64_t n;
    std::memcpy(&n, in.ids + row * sizeof n, sizeof n);
    return n;
  };
  auto const key_of = [](std::uint64_t n) { return std::pair(sparse::id_hash(n).slot(), n); };
  std::uint64_t first = 0, last = in.rows;
  while (first < last) {
    std::uint64_t const middle = first + (last - first) / 2;
    if (key_of(id_at(middle)) < key_of(id))
      first = middle + 1;
    else
      last = middle;
  }
  if (first == in.rows || id_at(first) != id) return false;
  std::memcpy(to.data(), in.weights + first * in.width * sizeof(float), in.width * sizeof(float));
  return true;
}

}  // namespace edl::checkpoint
