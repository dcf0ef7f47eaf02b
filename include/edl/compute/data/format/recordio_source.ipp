// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/recordio_source.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {

class recordio_source_reader final : public reader {
 public:
  recordio_source_reader(std::vector<std::shared_ptr<recordio_index const>> const& files,
                         std::size_t cache_bytes)
      : files_(files), cache_bytes_(cache_bytes) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard >= files_.size())
      throw data_error(fmt::format("there is no shard {}, only {}", shard, files_.size()));
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
  // A chunk's header has the checksum of its records.
  detail::content_digest sum;
  for (recordio_index::chunk const& c : files_.at(shard)->chunks)
    for (std::uint64_t const number :
         {std::uint64_t(c.size), std::uint64_t(c.records), std::uint64_t(c.checksum), std::uint64_t(c.with)})
      sum.add(number);
  return sum.value();
}

}  // namespace edl::data
