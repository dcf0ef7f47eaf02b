// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/compute/sparse/table.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/job/ps/row_update.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/ps/store_options.hpp"

namespace edl::ps {

/// The rows of tables that a store keeps, those of its hash slots, and their steps. Thread safety: `pull` is
/// safe concurrently with everything but `take`; use the rest on one thread.
class table_rows {
 public:
  using table_list = std::vector<std::shared_ptr<sparse::table>>;

  /// Empty tables. Throws edl::error for other tables than the layout's.
  explicit table_rows(store_options const& o);

  std::size_t tables() const { return tables_.size(); }
  sparse::table const& table(std::size_t number) const { return *tables_.at(number); }
  element_range slots() const { return held_; }       ///< hash slots whose rows it has
  element_range counted() const { return counted_; }  ///< hash slots that its store counts for

  /// The current weights of rows (`sparse::table::pull`).
  void pull(std::size_t table, view<std::uint64_t> ids, std::span<float> to) const;

  /// Whether all these ids belong to its hash slots.
  bool has_all(view<std::uint64_t> ids) const;

  /// New tables without rows; the store keeps its own.
  table_list empty() const;

  /// New tables with only the rows of these hash slots; the store keeps its own. Thread safety: safe
  /// concurrently with `pull` and other reads.
  table_list of(element_range slots) const;

  /// Adds a checkpoint's rows of these hash slots to tables made by `empty`. Returns their histories.
  std::vector<checkpoint::segment> read(std::string const& path, table_list& into) const;

  /// Replaces its tables. A later checkpoint cannot build on files of the previous ones.
  void take(table_list tables);

  /// From now on it has only the rows of these hash slots, which must be among those of the options. Its
  /// store still counts minibatches for the others, whose rows are elsewhere. Its tables must have no other
  /// rows, or `tables` replace them, and it returns the old ones. Add missing rows with `put`. For stores
  /// that make every step by `store::step`.
  table_list hold(element_range slots, std::optional<table_list> tables = {});

  /// Drops all rows; new ones are drawn from these seeds, one for each table.
  void seed(std::span<std::uint64_t const> seeds);

  /// Describes its tables, for a log; empty if there are none.
  std::string describe() const;

  /// Adds rows and candidates copied from another store (`sparse::copied_rows`). Throws for invalid bytes.
  void put(std::size_t table, bytes rows, bytes candidates);

  /// Gives rows these weights (ids, width) and the optimiser's initial slots. Ignores rows of hash slots that
  /// it does not hold.
  void set(std::size_t table, view<std::uint64_t> ids, view<float> weights);

  /// Calls `fail` with a description of what is wrong with a table's gradients.
  void check(std::span<sparse::row_gradients const> rows,
             std::function<void(std::string const&)> const& fail) const;

  /// Makes a step of these hash slots, after `made` earlier ones, with those of the rows that belong to them.
  /// `rate`: factor of the learning rate.
  void step(element_range slots, std::span<sparse::row_gradients const> rows, float rate, std::uint64_t made);

  /// Makes a step with sums from `accumulate`, divided by `divisor`. Where memory is watched, throws
  /// memory_fault if they differ from what was accumulated.
  void step_mean(element_range slots, std::vector<row_update> const& sums, float divisor, float rate,
                 std::uint64_t made);

  /// Adds those rows that belong to these hash slots, and are held, to each table's sums.
  void accumulate(std::vector<row_update>& to, element_range slots,
                  std::span<sparse::row_gradients const> rows) const;

  /// Adds the current rows to a snapshot.
  void snapshot_into(ps::full_snapshot& all) const;

 private:
  void add(row_update& to, element_range slots, sparse::row_gradients const& rows, std::size_t table) const;

  parameter_layout const& layout_;
  std::vector<sparse::table_options> options_;
  update_rule const& rule_;
  part_rates rates_;
  element_range counted_;            // hash slots for which the store counts, wherever their rows are
  element_range held_;               // those whose rows it has
  std::vector<std::uint64_t> gone_;  // for each table: rows that the policy removed from earlier tables
  table_list tables_;
  std::shared_ptr<checkpoint::row_chain> chain_;  // of these tables
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/table_rows.ipp"
#endif
