// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edl/compute/data/forwarding_source.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

enum class split_part { training, validation };

/// Determines which records are held out. It divides the records of a data set into runs of 1/fraction, and
/// draws one of each run by (seed, run). So of n records exactly ⌊n · fraction⌋ are held out, evenly spread,
/// and every process draws the same.
class record_split {
 public:
  /// A usage_error unless 0 < fraction < 1. It counts to the millionth.
  record_split(double fraction, std::uint64_t seed, std::uint64_t records);

  /// The record that is held out as number i < held_out_before(records).
  std::uint64_t validation(std::uint64_t i) const;

  /// The record that stays as number i < records − held_out_before(records).
  std::uint64_t training(std::uint64_t i) const;

  /// How many of the records below `record` are held out.
  std::uint64_t held_out_before(std::uint64_t record) const;

 private:
  std::uint64_t begin(std::uint64_t run) const;  // of a run

  std::uint64_t millionths_, seed_, held_out_ = 0;
};

/// One part of a split data set. It omits shards without a record of the part. Readers' errors give a
/// record's place in the whole.
class split_source : public forwarding_source {
 public:
  /// A data_error if no record is left in the part.
  split_source(std::shared_ptr<source const> whole, double fraction, std::uint64_t seed, split_part part);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;

  /// The digest of the shard's content, the fraction and the seed.
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t number_in_file(std::size_t shard, std::uint64_t record) const override {
    return inner().number_in_file(whole_shard(shard), place(shard, record));
  }
  std::uint64_t line_in_file(std::size_t shard, std::uint64_t record) const override {
    return inner().line_in_file(whole_shard(shard), place(shard, record));
  }

  std::string own_file(std::size_t shard, std::uint64_t record) const override {
    return inner().own_file(whole_shard(shard), place(shard, record));
  }

  /// The place in the whole of a record of the part.
  std::uint64_t place(std::size_t shard, std::uint64_t record) const;

  /// The number in the whole of a shard.
  std::size_t whole_shard(std::size_t shard) const { return places_.at(shard).shard; }

 private:
  struct place_of_shard {
    std::size_t shard = 0;
    std::uint64_t first = 0;  // record of the whole data set
    std::uint64_t taken = 0;  // records of the part before it
  };

  double fraction_;
  std::uint64_t seed_;
  split_part part_;
  record_split split_;
  std::vector<place_of_shard> places_;
  std::vector<shard> shards_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/split.ipp"
#endif
