// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "edl/compute/sparse/table.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"

/// Rows as bytes for sending: header, weights, the optimiser's slots, one row after the other, little-endian.
namespace edl::sparse {

/// The position of a reader of all rows of a table: the next row of a hash slot.
struct row_cursor {
  std::uint32_t slot = 0, row = 0;
};

/// Rows and candidates that are being copied from one table to another.
struct copied_rows {
  std::string rows, candidates;
};

/// Appends about `most` bytes of rows from the cursor on, and advances the cursor. It stops before hash slot
/// `last`. The last row of a hash slot is followed by its candidates. The table must not change between
/// calls.
/// slot `last`. Candidates of a hash slot go with its last row. The table must not change between two calls.
void append_rows(table const& from, row_cursor& at, std::uint32_t last, std::size_t most, copied_rows& to);

/// Calls visit(header, weights and slots) for each row of a hash slot of a table or snapshot, in order of id.
/// So equal tables give equal sequences, whatever the order in which their rows were created. Copies the hash
/// slot.
template <class Rows, class Visit>
void for_each_by_id(Rows const& from, std::uint32_t slot, Visit const& visit) {
  std::vector<std::pair<row_header, std::vector<float>>> rows;
  from.for_each(slot, [&](row_header const& header, view<float> values) {
    rows.emplace_back(header, std::vector<float>(values.begin(), values.end()));
  });
  std::ranges::sort(rows, {}, [](auto const& r) { return r.first.id; });
  for (auto const& [header, values] : rows) visit(header, view<float>(values));
}

/// Calls visit(header, weights and slots) for each row of `values` floats; with 0 values, for each candidate.
/// Throws edl::error for an incomplete row.
void for_each_row(bytes rows, std::size_t values,
                  std::function<void(row_header const&, view<float> values)> const& visit);

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/row_bytes.ipp"
#endif
