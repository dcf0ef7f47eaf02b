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

/// Rows as bytes, to be sent: header, weights, the optimiser's slots, one row after the other, little-endian.
namespace edl::sparse {

/// Where a reader of all rows of a table has come to: the next row of a hash slot.
struct row_cursor {
  std::uint32_t slot = 0, row = 0;
};

/// Rows and candidates of a table, on their way to another one.
struct copied_rows {
  std::string rows, candidates;
};

/// Appends rows from the cursor on, about `most` bytes of them, and moves the cursor. It stops before hash
/// slot `last`. Candidates of a hash slot go with its last row. The table must not change between two calls.
void append_rows(table const& from, row_cursor& at, std::uint32_t last, std::size_t most, copied_rows& to);

/// Calls visit(header, weights and slots) for each row of a hash slot of a table or snapshot, by id. So equal
/// tables are visited alike, in whatever order their rows were made. It takes a copy of the hash slot.
template <class Rows, class Visit>
void for_each_by_id(Rows const& from, std::uint32_t slot, Visit const& visit) {
  std::vector<std::pair<row_header, std::vector<float>>> rows;
  from.for_each(slot, [&](row_header const& header, view<float> values) {
    rows.emplace_back(header, std::vector<float>(values.begin(), values.end()));
  });
  std::ranges::sort(rows, {}, [](auto const& r) { return r.first.id; });
  for (auto const& [header, values] : rows) visit(header, view<float>(values));
}

/// Calls visit(header, weights and slots) for each row of `values` floats; of none, for each candidate.
/// Throws edl::error for a part of a row.
void for_each_row(bytes rows, std::size_t values,
                  std::function<void(row_header const&, view<float> values)> const& visit);

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/row_bytes.ipp"
#endif
