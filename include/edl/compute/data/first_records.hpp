// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "edl/compute/data/forwarding_source.hpp"

namespace edl::data {

/// The first records of a source, in the order of its shards; all of them if it has fewer. Thread safety: as
/// the source.
class first_records final : public forwarding_source {
 public:
  first_records(std::unique_ptr<source> of, std::uint64_t records) : forwarding_source(std::move(of)) {
    for (shard const& s : inner().shards()) {
      if (records == 0) break;
      shards_.push_back({s.name, s.records < records ? s.records : records});
      records -= shards_.back().records;
    }
  }

  std::vector<shard> const& shards() const override { return shards_; }

 private:
  std::vector<shard> shards_;
};

}  // namespace edl::data
