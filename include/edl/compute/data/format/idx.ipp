// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/compute/data/format/idx.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

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
          fmt::format("{}: there is no record {}, it has {}", name_, record, labels_.values.size()));
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

/// The values of an IDX file, with its header.
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

}  // namespace edl::data
