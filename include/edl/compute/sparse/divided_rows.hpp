// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl::sparse {

/// Rows of some tables, divided by their hash slots among the parts that servers hold (`partition`). Within a
/// part they keep their order.
///
/// Thread safety: unsafe.
class divided_rows {
 public:
  divided_rows(std::span<table_shape const> tables, std::uint32_t parts);

  /// Divides the ids of a table, and replaces the table's earlier division.
  void divide(std::size_t table, view<std::uint64_t> ids);

  view<std::uint64_t> ids(std::size_t part, std::size_t table) const { return share(part, table).ids; }
  std::span<float> values(std::size_t part, std::size_t table) { return share(part, table).values; }

  /// Copies values (ids, width) of all ids of a table to the parts, or back.
  void scatter(std::size_t table, view<float> from);
  void gather(std::size_t table, std::span<float> to) const;

  std::size_t tables() const { return widths_.size(); }

 private:
  struct one_share {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint32_t> places;  // among all ids of the table
    std::vector<float> values;
  };
  one_share& share(std::size_t part, std::size_t table) { return shares_[part * tables() + table]; }
  one_share const& share(std::size_t part, std::size_t table) const {
    return shares_[part * tables() + table];
  }

  std::vector<std::size_t> widths_;
  std::vector<std::uint32_t> part_of_;  // each hash slot
  std::vector<one_share> shares_;       // by part, then table
};

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/divided_rows.ipp"
#endif
