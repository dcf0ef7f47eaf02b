// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/reader.hpp"

namespace edl::data {

/// The first records of a source, in the order of its shards; all of them where there are no more. Thread
/// safety: as the source.
class first_records final : public source {
 public:
  first_records(std::unique_ptr<source> of, std::uint64_t records) : of_(std::move(of)) {
    for (shard const& s : of_->shards()) {
      if (records == 0) break;
      shards_.push_back({s.name, s.records < records ? s.records : records});
      records -= shards_.back().records;
    }
  }

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override { return of_->open(); }
  std::uint64_t digest(std::size_t shard) const override { return of_->digest(shard); }
  std::uint64_t number_in_file(std::size_t shard, std::uint64_t record) const override {
    return of_->number_in_file(shard, record);
  }
  std::span<std::string const> damage() const override { return of_->damage(); }

 private:
  std::unique_ptr<source> of_;
  std::vector<shard> shards_;
};

}  // namespace edl::data
