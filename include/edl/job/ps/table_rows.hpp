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

/// The rows of tables that a store keeps: those of its hash slots, and how a step changes them. Thread
/// safety: `pull` is safe beside all else but `take`; the rest is used by one thread.
class table_rows {
 public:
  using table_list = std::vector<std::shared_ptr<sparse::table>>;

  /// Empty tables. Throws edl::error for other tables than the layout's.
  explicit table_rows(store_options const& o);

  std::size_t tables() const { return tables_.size(); }
  sparse::table const& table(std::size_t number) const { return *tables_.at(number); }
  element_range slots() const { return held_; }       ///< hash slots whose rows it has
  element_range counted() const { return counted_; }  ///< hash slots that its store counts for

  /// The weights of rows now (`sparse::table::pull`).
  void pull(std::size_t table, view<std::uint64_t> ids, std::span<float> to) const;

  /// Whether all these ids are of its hash slots.
  bool has_all(view<std::uint64_t> ids) const;

  /// Tables without rows; not the store's.
  table_list empty() const;

  /// Tables with the rows of these hash slots alone; likewise. Thread safety: safe beside `pull` and what
  /// only reads.
  table_list of(element_range slots) const;

  /// Adds what a checkpoint has of these rows to tables of `empty`: their histories.
  std::vector<checkpoint::segment> read(std::string const& path, table_list& into) const;

  /// These tables take the place of its own. What was written of those is of no use to write less.
  void take(table_list tables);

  /// From now on the rows of these hash slots, among those of the options, are all that it has. Its store
  /// counts minibatches for the others all the same: somebody else has their rows. Its tables have rows of no
  /// others, or `tables` take their place, and the old ones are returned. Rows that it lacks are to be put.
  /// For stores that make every step by `store::step`.
  table_list hold(element_range slots, std::optional<table_list> tables = {});

  /// From now on rows that are made follow from these seeds, one for each table. The rows that are there go.
  void seed(std::span<std::uint64_t const> seeds);

  /// What its tables have, for a log; empty where there are none.
  std::string describe() const;

  /// Rows and candidates as they were in another store (`sparse::copied_rows`). Throws for bytes that are
  /// none.
  void put(std::size_t table, bytes rows, bytes candidates);

  /// Gives rows these weights (ids, width), and what the optimiser begins with. Those of hash slots that it
  /// does not hold are left out.
  void set(std::size_t table, view<std::uint64_t> ids, view<float> weights);

  /// Calls `fail` with what is wrong of gradients for each table.
  void check(std::span<sparse::row_gradients const> rows,
             std::function<void(std::string const&)> const& fail) const;

  /// A step of these hash slots, of which `made` have been made before, with those of the rows that are of
  /// them. `rate`: what the learning rate is multiplied by.
  void step(element_range slots, std::span<sparse::row_gradients const> rows, float rate, std::uint64_t made);

  /// The same with sums of `accumulate`, divided. Where memory is watched, throws memory_fault if they are
  /// not what was accumulated.
  void step_mean(element_range slots, std::vector<row_update> const& sums, float divisor, float rate,
                 std::uint64_t made);

  /// Adds to the sums of each table those of the rows that are of these hash slots, and held.
  void accumulate(std::vector<row_update>& to, element_range slots,
                  std::span<sparse::row_gradients const> rows) const;

  /// Adds the rows as they are now to a snapshot.
  void snapshot_into(ps::full_snapshot& all) const;

 private:
  void add(row_update& to, element_range slots, sparse::row_gradients const& rows, std::size_t table) const;

  parameter_layout const& layout_;
  std::vector<sparse::table_options> options_;
  update_rule const& rule_;
  part_rates rates_;
  element_range counted_;            // hash slots, whoever has their rows
  element_range held_;               // of these
  std::vector<std::uint64_t> gone_;  // rows of each table that the policy has removed from tables before
  table_list tables_;
  std::shared_ptr<checkpoint::row_chain> chain_;  // of these tables
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/table_rows.ipp"
#endif
