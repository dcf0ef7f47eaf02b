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

/// Gradients of rows of a table; ids are distinct.
struct row_gradients {
  view<std::uint64_t> ids;
  view<float> gradients;  ///< (ids.size(), width)
};

/// Which rows add up to which numbers of a minibatch's features, or the inverse. Result i is a run of as many
/// numbers as a row has, beginning at number `at[i]`; it is the sum of terms [first[i], first[i + 1]), in
/// this order. Term k is `weights[k]` times the run that begins at number `from[k]`.
struct row_terms {
  std::vector<std::uint32_t> at, first, from;
  std::vector<float> weights;

  std::size_t results() const { return at.size(); }
  void begin(std::size_t result);
  void add(std::size_t term, float weight);
  void end() { first.push_back(std::uint32_t(from.size())); }  ///< behind the last
  void clear();
};

/// Inverts `features`: the result lists the terms of each of `rows` rows, in their order, by which gradients
/// of features add up to gradients of rows. A row with more than `most` terms is summed in groups of that
/// size; the groups' sums lie after the rows, and `joined` adds them up.
void turn_around(row_terms const& features, std::size_t rows, std::size_t width, std::size_t most,
                 row_terms& to, row_terms& joined);

/// The distinct rows that a minibatch needs. `begin` finds their ids, and the caller fills `rows`. `fill`
/// writes the rows into the batch's features, and `sum` computes the gradients of rows from those of
/// features. Sums follow the order of the samples, so equal batches give equal sums.
///
/// Thread safety: unsafe.
class minibatch_rows {
 public:
  /// The layout must outlive this.
  explicit minibatch_rows(embedding_layout const& of);

  void begin(data::batch const& b);

  std::size_t tables() const { return tables_.size(); }
  view<std::uint64_t> ids(std::size_t table) const { return tables_[table].ids; }
  std::span<float> rows(std::size_t table) { return tables_[table].rows; }  ///< (ids, width)
  view<float> rows(std::size_t table) const { return tables_[table].rows; }

  void fill(data::batch& b) const;

  /// Lists what `fill` would do, by table, for a caller that does it on a device.
  void list(data::batch const& b, std::span<row_terms> features) const;

  /// `gradients`: those of the batch's features. Returns one entry for each table, valid until the next call.
  std::span<row_gradients const> sum(data::batch const& b, view<float> gradients);

  /// The same, for a caller that computes the sums on a device and writes them into `gradients`.
  std::span<row_gradients const> begin_sums();

  /// The gradients of a table's rows, to be modified.
  std::span<float> gradients(std::size_t table) { return tables_[table].gradients; }

 private:
  struct part {
    std::size_t width = 0;
    std::vector<std::uint64_t> ids;  // each once, in the order of their first appearance
    std::vector<float> rows, gradients;
    std::vector<std::uint32_t> index;  // open addresses: 1 + a number of `ids`, or 0
  };

  static std::uint32_t number_of(part& t, std::uint64_t id);
  /// Calls begin(input, its values' place among the features), then visit(input, number of the row, place,
  /// weight) for each of the rows that add up to these values.
  template <class Begin, class Visit>
  void each(data::batch const& b, Begin const& begin, Visit const& visit) const;

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
