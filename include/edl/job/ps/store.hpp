// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/compute/optim/optimizer.hpp"
#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/job/ps/freezer.hpp"
#include "edl/job/ps/policy.hpp"
#include "edl/job/ps/segments.hpp"
#include "edl/job/ps/snapshot.hpp"
#include "edl/job/ps/store_options.hpp"
#include "edl/job/ps/table_rows.hpp"
#include "edl/job/ps/variables.hpp"

namespace edl::ps {

/// What a store restores from a checkpoint: everything, if its job resumes; only values, slots and steps, if
/// another job starts from them.
enum class history { kept, forgotten };

enum class push_outcome { applied, repeat, stale };

struct push_result {
  ps::push_outcome outcome = push_outcome::applied;
  std::uint64_t version = 0;  ///< of the store, now
  bool evaluate = false;      ///< this version has been frozen for an evaluation
  bool checkpoint = false;    ///< this version has been frozen for a checkpoint
  std::vector<push_result>
      passed{};  ///< versions below this one that have been frozen, as several were reached
};

/// A step was made only partly, because memory was exhausted, or memory has changed by itself. The store
/// refuses everything from then on: its state is not a version.
struct store_failure : error {
  using error::error;
};

/// The state of one server, or of a process that trains alone. It is a range of the arena with the slots of
/// its parameters (`variables`), and rows of tables (`table_rows`). A ledger records what they have applied
/// (`segments`), and versions are frozen when they are due (`freezer`). It is independent of models and
/// sockets.
///
/// Elements and hash slots restored from servers whose ledgers differed keep their own history. A push that
/// some of them have counted is applied to the others only, so every minibatch counts once for every element.
/// The version is the least number of steps of a segment: stores that have applied the same minibatches have
/// the same version.
///
/// Errors are edl::error and do not change the store. Thread safety: used by one thread, except
/// `rows().pull`; `snapshot`s and `full_snapshot`s may be passed to any thread.
class store final : public freezer::source {
 public:
  explicit store(store_options options);
  store(store const&) = delete;
  store& operator=(store const&) = delete;

  /// Initial values: `initialise(first, values)` fills elements [first, first + values.size()) of the arena,
  /// as a pure function of the seed. Slots and ledger start anew, and so does the version unless the values
  /// have one; frozen versions are dropped.
  void configure(std::function<void(std::size_t first, std::span<float> values)> const& initialise,
                 std::uint64_t version = 0);

  /// The state of a checkpoint of any number of servers. Frozen versions are dropped.
  void restore(std::string const& path, history what = history::kept);

  /// The state of another store of the same elements: its segments, and `copy_size` numbers: the variables,
  /// then the slots as its `full_snapshot` holds them. Frozen versions are dropped. Throws, changing nothing,
  /// for an invalid state. The tables are then empty; add their rows with `table_rows::put`.
  void restore(std::vector<checkpoint::segment> segments, std::vector<checkpoint::segment> row_segments,
               view<float> values);
  std::size_t copy_size() const { return variables_.copy_size(); }

  /// Counts minibatches of one push, in order: gradients of the range's parameters, and the change of its
  /// carried state. They are several only if each push is a step (`policy::group`). An element that has
  /// counted some of them before makes only a part of the step, by the records of the others. `computed_on`:
  /// the version that the gradients were computed on. In a synchronous mode a minibatch counts when it is
  /// accumulated. `rows`: for each table, gradients of rows of the store's hash slots. Throws for spans of
  /// another length, an invalid identity, and a minibatch whose predecessor in its task is missing.
  push_result push(std::span<contribution const> minibatches, std::uint64_t computed_on,
                   view<float> gradients, view<float> state_change,
                   std::span<sparse::row_gradients const> rows = {});
  push_result push(contribution const& c, std::uint64_t computed_on, view<float> gradients,
                   view<float> state_change, std::span<sparse::row_gradients const> rows = {}) {
    return push(std::span(&c, 1), computed_on, gradients, state_change, rows);
  }

  /// Counts minibatches together, as one step with the mean over all their records. `sums`: for every
  /// element, the sum over minibatches of the gradient, or change of state, times the minibatch's records;
  /// overwritten. Elements that have counted a minibatch before must have been left out of the sum
  /// (`segments::leave_out`). `rows`: for each minibatch and table, gradients times the minibatch's records.
  /// Intended for copies that all make the same step; nothing may be accumulated. Throws as `push` does, and
  /// if a minibatch occurs twice. After `move_to` the sums are in the arena, and `sums` is empty.
  push_result step(std::span<contribution const> minibatches, std::span<float> sums,
                   std::span<std::vector<sparse::row_gradients> const> rows = {});

  /// Makes a step of whatever is accumulated, at the end of a job.
  push_result flush();

  /// Drops accumulated minibatches, as if they had never arrived.
  void drop_waiting() { segments_.drop_waiting(); }

  /// Moves variables and slots to `there`, which must outlive this; steps are made there. A push then
  /// provides a minibatch's identity, and its spans are ignored. Throws edl::error if steps average several
  /// minibatches, or if histories differ.
  void move_to(arena& there);
  void move_back() { variables_.move_back(); }

  /// Whether this version is frozen (`freezer::due`).
  push_result due();

  /// Freezes this version with its rows if a checkpoint of it is due and it is not frozen, or lacks rows that
  /// the store has now. Needed by a store that reached the version by a copy, not by its step.
  void freeze_rows();

  std::uint64_t version() const { return version_; }
  element_range elements() const { return variables_.elements(); }
  std::size_t parameters() const { return variables_.parameters(); }
  std::size_t state() const { return variables_.state(); }

  /// The current variables, valid until the next push.
  view<float> current() const { return variables_.current(); }

  /// The current variables, permanently: for sending, evaluating and writing.
  ps::snapshot snapshot() const { return {version_, variables_.hold()}; }

  /// With `store_options::watches_memory`: throws store_failure if the variables differ from what the last
  /// step has written.
  void check_memory() const;
  bool watches_memory() const { return variables_.watches_memory(); }

  /// The current variables as evaluated and exported: parameters by their moving average, if there is one. A
  /// version frozen for an evaluation has the same form.
  ps::snapshot averaged() const override { return {version_, variables_.averaged()}; }

  /// The full current state. Accumulated but unapplied gradients are neither in the variables nor in the
  /// ledgers.
  ps::full_snapshot full_snapshot() const override;

  /// Number of arrays that hold a version of the variables. The server of pulls bounds how many are in
  /// progress.
  std::size_t buffers() const { return variables_.buffers(); }

  table_rows& rows() { return rows_; }
  table_rows const& rows() const { return rows_; }
  freezer& frozen() { return frozen_; }
  ps::segments const& segments() const { return segments_; }

 private:
  void begin(variables::contents values, table_rows::table_list tables,
             std::vector<checkpoint::segment> segments, std::vector<checkpoint::segment> row_segments);
  void begin_anew(variables::contents values, table_rows::table_list tables, std::uint64_t version);
  template <class Work>
  void apply_or_fail(Work const& work);
  void check_usable() const;
  void apply_waiting(segment& s);
  push_result advanced();

  update_rule const& rule_;
  policy const& when_;
  variables variables_;
  table_rows rows_;
  ps::segments segments_;
  freezer frozen_;
  std::uint64_t version_ = 0;
  std::string failure_;  // why the state is no longer a version
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/job/ps/store.ipp"
#endif
