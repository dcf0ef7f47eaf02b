// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/sparse/embedding_layout.hpp"
#include "edl/core/span.hpp"

namespace edl::sparse {

/// Gradients of rows of a table; no id comes twice.
struct row_gradients {
  view<std::uint64_t> ids;
  view<float> gradients;  ///< (ids.size(), width)
};

/// The rows that a minibatch needs, each once, and what becomes of them. `begin` finds the ids, and the
/// caller fills `rows`. `fill` puts them into the batch's features, and `sum` makes gradients of rows of the
/// features'. Sums are made in the order of the samples, so equal batches give equal sums.
///
/// Thread safety: unsafe.
class minibatch_rows {
 public:
  /// The layout outlives this.
  explicit minibatch_rows(embedding_layout const& of);

  void begin(data::batch const& b);

  std::size_t tables() const { return tables_.size(); }
  view<std::uint64_t> ids(std::size_t table) const { return tables_[table].ids; }
  std::span<float> rows(std::size_t table) { return tables_[table].rows; }  ///< (ids, width)

  void fill(data::batch& b) const;

  /// `gradients`: of the batch's features. One answer for each table, valid until the next call.
  std::span<row_gradients const> sum(data::batch const& b, view<float> gradients);

  /// The gradients of rows that `sum` made, of a table, to be changed.
  std::span<float> gradients(std::size_t table) { return tables_[table].gradients; }

 private:
  struct part {
    std::size_t width = 0;
    std::vector<std::uint64_t> ids;  // each once, in the order of their first appearance
    std::vector<float> rows, gradients;
    std::vector<std::uint32_t> index;  // open addresses: 1 + a number of `ids`, or 0
  };

  static std::uint32_t number_of(part& t, std::uint64_t id);
  /// visit(input, number of the row, where its values belong among the features, weight by which they count).
  template <class Visit>
  void each(data::batch const& b, Visit const& visit) const;

  embedding_layout const& layout_;
  std::vector<part> tables_;
  std::vector<std::size_t> most_;       // ids of the batch, of each table
  std::vector<std::uint32_t> numbers_;  // of the row of each id of the batch
  std::vector<row_gradients> summed_;
};

}  // namespace edl::sparse

#ifdef EDL_HEADER_ONLY
#include "edl/compute/sparse/minibatch_rows.ipp"
#endif
