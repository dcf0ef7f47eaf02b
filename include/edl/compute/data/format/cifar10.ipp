// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>

#include "edl/compute/data/format/cifar10.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {

inline constexpr std::size_t cifar10_plane = 32 * 32, cifar10_record = 1 + 3 * cifar10_plane;

class cifar10_reader final : public reader {
 public:
  explicit cifar10_reader(std::vector<input_file> const& files) : files_(files) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= files_.size())
      throw data_error(fmt::format("there is no shard {}, only {}", shard, files_.size()));
    auto const& file = files_[shard];
    if (record >= file.size() / cifar10_record)
      throw data_error(fmt::format("{}: there is no record {}, it has {}", file.path(), record,
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

}  // namespace edl::data
