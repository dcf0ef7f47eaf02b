// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "edl/compute/sparse/hash.hpp"
#include "edl/compute/sparse/row_memory.hpp"
#include "edl/compute/sparse/table.hpp"
#include "edl/core/span.hpp"

namespace edl::sparse {

/// The rows of a table at one moment, while training goes on. It is a copy-on-write view: a row is copied
/// before it changes for the first time after that moment. So its memory grows with the number of changed
/// rows.
///
/// Thread safety: safe, also during calls of the table, which must outlive it.
class table_snapshot {
 public:
  explicit table_snapshot(table& of);
  ~table_snapshot();
  table_snapshot(table_snapshot const&) = delete;
  table_snapshot& operator=(table_snapshot const&) = delete;

  table const& of() const { return table_; }
  std::uint64_t size() const { return rows_; }                           ///< rows
  std::uint32_t size(std::uint32_t slot) const { return sizes_[slot]; }  ///< rows of a hash slot
  std::uint64_t removed() const { return removed_; }                     ///< the place among `removals`

  /// Calls visit(header, weights and then slots) for each row of a hash slot. The table's calls on rows of
  /// it, and of its neighbours, block meanwhile.
  void for_each(std::uint32_t slot,
                std::function<void(row_header const&, view<float> values)> const& visit) const;

  /// The same for candidates.
  void for_each_candidate(std::uint32_t slot, std::function<void(row_header const&)> const& visit) const;

 private:
  friend class table;

  /// A row as it was; without values: it did not exist.
  struct kept_row {
    row_header header{};
    std::vector<float> values;
  };

  /// Called under the lock of a row's stripe before the row changes; `fresh`: the row was just created.
  void keep(row r, bool fresh);
  void keep_candidate(row_header const& was, bool fresh);

  table& table_;
  std::vector<std::uint32_t> sizes_;
  std::uint64_t rows_ = 0, removed_ = 0;
  std::vector<std::unordered_map<std::uint64_t, kept_row>> kept_;  // by hash slot, then id
  std::vector<std::unordered_map<std::uint64_t, std::optional<row_header>>> kept_candidates_;  // likewise
};

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/table_snapshot.ipp"
#endif
