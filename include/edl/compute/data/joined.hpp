// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// Several sources as one: the shards of the first, then those of the next. Columns of tables have one kind
/// in all of them (compute/data/format/table.hpp).
class joined_source : public source {
 public:
  /// Takes sources with their paths. Throws data_error if some of them have classes, and not all have the
  /// same ones, or if columns of tables do not fit together.
  explicit joined_source(std::vector<std::pair<std::string, std::unique_ptr<source>>> parts);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;
  std::uint64_t number_in_file(std::size_t shard, std::uint64_t record) const override;
  std::uint64_t line_in_file(std::size_t shard, std::uint64_t record) const override;
  std::string own_file(std::size_t shard, std::uint64_t record) const override;
  std::span<std::string const> damage() const override { return damage_; }
  std::span<std::string const> classes() const override { return parts_.front()->classes(); }
  std::vector<std::string> features() const override;
  std::span<std::string const> notes() const override { return notes_; }
  std::string missing_note() const override;

  /// The columns of the tables among the sources; empty: there are none.
  std::vector<table_column> columns() const;

  /// As table::agree, for each of these tables.
  void agree(std::vector<table_column> const& with);

 private:
  std::vector<std::unique_ptr<source>> parts_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // of each shard: the part, its number there
  std::vector<shard> shards_;
  std::vector<std::string> damage_, notes_;
};

/// The columns of a table, or of several joined ones; empty: it is not a table.
std::vector<table_column> columns_of(source const& of);

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/joined.ipp"
#endif
