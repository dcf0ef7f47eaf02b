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

/// Which rows are added up to which numbers of a minibatch's features, or the other way round. Result i is a
/// row's width of numbers from number `at[i]` on, and the sum of terms [first[i], first[i + 1]), in this
/// order. A term is `weights[k]` times the numbers from number `from[k]` on.
struct row_terms {
  std::vector<std::uint32_t> at, first, from;
  std::vector<float> weights;

  std::size_t results() const { return at.size(); }
  void begin(std::size_t result);
  void add(std::size_t term, float weight);
  void end() { first.push_back(std::uint32_t(from.size())); }  ///< behind the last
  void clear();
};

/// The terms of each of `rows` rows, in their order, by which gradients of rows are those of features that
/// the rows were terms of. Of one that has more than `most`, so many at a time are added up behind the rows
/// first, and `joined` adds these up.
void turn_around(row_terms const& features, std::size_t rows, std::size_t width, std::size_t most,
                 row_terms& to, row_terms& joined);

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
  view<float> rows(std::size_t table) const { return tables_[table].rows; }

  void fill(data::batch& b) const;

  /// What `fill` would do, by table, for who does it elsewhere.
  void list(data::batch const& b, std::span<row_terms> features) const;

  /// `gradients`: of the batch's features. One answer for each table, valid until the next call.
  std::span<row_gradients const> sum(data::batch const& b, view<float> gradients);

  /// The same, where who does it elsewhere writes into `gradients`.
  std::span<row_gradients const> begin_sums();

  /// The gradients of rows, of a table, to be changed.
  std::span<float> gradients(std::size_t table) { return tables_[table].gradients; }

 private:
  struct part {
    std::size_t width = 0;
    std::vector<std::uint64_t> ids;  // each once, in the order of their first appearance
    std::vector<float> rows, gradients;
    std::vector<std::uint32_t> index;  // open addresses: 1 + a number of `ids`, or 0
  };

  static std::uint32_t number_of(part& t, std::uint64_t id);
  /// begin(input, where values belong among the features), then for each of the rows that are added up to
  /// them visit(input, number of the row, where, weight by which it counts).
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
