// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edl/checkpoint/checkpoint.hpp"
#include "edl/core/error.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/partition.hpp"
#include "edl/core/span.hpp"
#include "edl/optim/arena.hpp"
#include "edl/optim/moving_average.hpp"
#include "edl/optim/part_rates.hpp"
#include "edl/optim/rated_rule.hpp"
#include "edl/optim/update_rule.hpp"
#include "edl/ps/buffer.hpp"
#include "edl/ps/frozen.hpp"
#include "edl/ps/policy.hpp"
#include "edl/ps/snapshot.hpp"
#include "edl/sparse/minibatch_rows.hpp"
#include "edl/sparse/table.hpp"

namespace edl::ps {

/// What a store is for. `layout`, `rule` and `when` outlive it.
struct store_options {
  parameter_layout const& layout;
  element_range elements;                       ///< of the arena, from `partition`
  element_range slots{};                        ///< hash slots, of the rows of tables; likewise
  std::vector<sparse::table_options> tables{};  ///< of the layout, in order
  update_rule const& rule;
  policy const& when;
  std::uint64_t evaluation_steps = 0;  ///< freeze at versions that are a multiple; 0: never
  std::uint64_t checkpoint_steps = 0;  ///< likewise
  std::size_t most_frozen = 2;         ///< of each kind (`frozen`)
  /// No step follows a version that is to be evaluated before it has been: no older one is kept for that.
  bool rests_to_evaluate = false;
  double moving_average = 0;           ///< decay of the average of parameters; 0: there is none
  std::vector<element_range> fixed{};  ///< of the arena, from `fixed_elements`: no step changes these
  part_rates rates{};                  ///< of parts of the model, from `rates_of_parts`
};

/// What a store remembers of a checkpoint: everything, when its job goes on; only values, slots and steps,
/// when another job starts from them.
enum class history { kept, forgotten };

enum class push_outcome { applied, repeat, stale };

struct push_result {
  ps::push_outcome outcome = push_outcome::applied;
  std::uint64_t version = 0;  ///< of the store, now
  bool evaluate = false;      ///< this version has been frozen for an evaluation
  bool checkpoint = false;    ///< this version has been frozen for a checkpoint
};

/// Of a task: minibatches that every element of the store has counted, and whether these are all.
struct task_position {
  std::uint32_t applied = 0;
  bool closed = false;
};

/// A step was made in part, because memory ended. The store refuses everything from then on: what it holds is
/// no version, and nobody may count on it.
struct store_failure : error {
  using error::error;
};

/// The state of one server, or of a process that trains alone. It is a range of the arena with the slots of
/// its parameters, and rows of tables. A ledger tells what they have applied. It knows no model and no
/// socket.
///
/// Elements and hash slots restored from servers whose ledgers differed keep their own history
/// (`checkpoint::segment`). A push that some of them have counted is applied to the others only, so every
/// minibatch counts once for every element. They become one when their histories agree. The version is the
/// least number of steps of a segment: stores that have applied the same minibatches have the same version.
///
/// Errors are edl::error and leave the store as it was. Thread safety: used by one thread; `snapshot`s and
/// `full_snapshot`s go anywhere.
class store {
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

  /// Whether a checkpoint has the moving average of the weights. A store that keeps one and is restored from
  /// one without begins it at the weights.
  static bool has_average(std::string const& path);

  /// The state of another store of the same elements: its segments, and `copy_size` numbers: the variables,
  /// then the slots as its `full_snapshot` holds them. Frozen versions are dropped. Throws, changing nothing,
  /// for what cannot be one. The tables are empty then; their rows are to be put by `put_rows`.
  void restore(std::vector<checkpoint::segment> segments, std::vector<checkpoint::segment> row_segments,
               view<float> values);
  std::size_t copy_size() const { return options_.elements.size() + slot_stride_ * slot_names_.size(); }

  /// Counts a minibatch: gradients of the range's parameters, and the change of its carried state.
  /// `computed_on`: the version that the gradients were computed on. In a synchronous mode a minibatch counts
  /// when it is accumulated. `rows`: for each table, gradients of rows of the store's hash slots. Throws for
  /// spans of another length, an identity that is none, and a minibatch whose forerunner in its task is
  /// missing.
  push_result push(contribution const& c, std::uint64_t computed_on, view<float> gradients,
                   view<float> state_change, std::span<sparse::row_gradients const> rows = {});

  /// The weights of rows now (`sparse::table::pull`). Thread safety: safe beside all else but `configure` and
  /// `restore`.
  void pull_rows(std::size_t table, view<std::uint64_t> ids, std::span<float> to) const;

  /// Whether all these ids are of its hash slots.
  bool has_all(view<std::uint64_t> ids) const;

  std::size_t tables() const { return tables_.size(); }
  sparse::table const& table(std::size_t number) const { return *tables_.at(number); }
  element_range slots() const { return held_; }  ///< hash slots whose rows it has

  using table_list = std::vector<std::shared_ptr<sparse::table>>;

  /// New tables, with the rows of these hash slots alone; not the store's. Thread safety: safe beside
  /// `pull_rows` and what only reads.
  table_list rows_of(element_range slots) const;

  /// From now on the rows of these hash slots, among those of the options, are all that it has. It counts
  /// minibatches for the others all the same: somebody else has their rows. Its tables have rows of no
  /// others, or `tables` take their place, and the old ones are returned. Rows that it lacks are to be put.
  /// For stores that make every step by `step`.
  table_list hold(element_range slots, std::optional<table_list> tables = {});

  /// From now on rows that are made follow from these seeds, one for each table. The rows that are there go.
  void seed_tables(std::span<std::uint64_t const> seeds);

  /// What its tables have, for a log; empty where there are none.
  std::string describe_tables() const;

  /// Rows and candidates as they were in another store (`sparse::copied_rows`). Throws for bytes that are
  /// none.
  void put_rows(std::size_t table, bytes rows, bytes candidates);

  /// Gives rows these weights (ids, width), and what the optimiser begins with. Those of hash slots that it
  /// does not hold are left out.
  void set_rows(std::size_t table, view<std::uint64_t> ids, view<float> weights);

  /// Counts minibatches together, as one step with the mean over all their records. `sums`: for every
  /// element, the gradients, or the changes of state, of each minibatch times its records; it is used up.
  /// Elements that have counted a minibatch before must have been left out of the sum (`leave_out`). For
  /// stores whose copies, all over a job, make the same step: what is accumulated must be nothing. Throws as
  /// `push` does, and for one minibatch twice. Where variables are elsewhere, so are the sums, and `sums` is
  /// empty.
  /// `rows`: of each minibatch, those of each table, gradients times the minibatch's records.
  push_result step(std::span<contribution const> minibatches, std::span<float> sums,
                   std::span<std::vector<sparse::row_gradients> const> rows = {});

  /// From now on variables and slots are in `there`, which outlives this, and steps are made there. A push
  /// brings a minibatch's identity, and its spans are not looked at. Throws edl::error where that cannot be:
  /// steps of several minibatches, histories that have not become one.
  void move_to(arena& there);

  /// Back here.
  void move_back();

  /// Whether no element has counted a minibatch.
  bool not_yet_applied(contribution const& c) const;

  /// Zeroes what belongs to elements that have counted a minibatch.
  void leave_out(contribution const& c, std::span<float> values) const;

  /// Freezes a version with tables that is to be written, if it is not, or not with all rows that it has now.
  /// Who has come to it by a copy has not made its step.
  void freeze_rows();

  /// Whether this version is frozen to be evaluated or written, as the step that made it has said. With
  /// `store_options::rests_to_evaluate` what is to be evaluated is frozen now, if it is not.
  push_result due();

  /// Makes a step of what is accumulated, however little: the end of a job.
  push_result flush();

  /// Forgets what is accumulated: its minibatches are as if they had not come.
  void drop_waiting();

  /// What need not be sent again, by any element.
  ledger counted() const;

  /// Whether it freezes versions by itself; a backup need not.
  void freeze(bool on) { freezes_ = on; }

  /// Drops all frozen versions: who wanted them is gone.
  void forget_frozen();

  /// Which minibatches of a task need not be sent again.
  task_position position(task_key const& task) const;

  std::uint64_t version() const { return version_; }
  element_range elements() const { return options_.elements; }
  std::size_t parameters() const { return parameters_; }  ///< of the elements, from the first
  std::size_t state() const { return options_.elements.size() - parameters_; }

  /// The variables now, until the next push.
  view<float> current() const {
    fetch();
    return variables_.read();
  }

  /// The variables now, for ever: to be sent, evaluated, written.
  ps::snapshot snapshot() const {
    fetch();
    return {version_, variables_.hold()};
  }

  /// The variables now as they are evaluated and exported: parameters by their moving average where there is
  /// one. Frozen for an evaluation they are the same.
  ps::snapshot averaged() const;

  /// Everything now. Gradients accumulated but not applied are neither in the variables nor in the ledgers.
  ps::full_snapshot full_snapshot() const;

  /// A version frozen for an evaluation, or for a checkpoint. It stays until it is released. Throws when it
  /// is not kept: never frozen, released, or given up for newer ones.
  ps::snapshot evaluation(std::uint64_t version);
  bool has_evaluation(std::uint64_t version) { return evaluations_.find(version).has_value(); }
  ps::full_snapshot checkpoint(std::uint64_t version);
  void release_evaluation(std::uint64_t version) { evaluations_.release(version); }
  void release_checkpoint(std::uint64_t version) { checkpoints_.release(version); }

  /// Arrays that hold a version of the variables now. Who serves pulls bounds how many are under way.
  std::size_t buffers() const { return variables_.buffers(); }

  /// Histories that have not become one yet.
  std::size_t segments() const { return segments_.size(); }

 private:
  struct row_sums {
    std::vector<std::uint64_t> ids;  // as they came
    std::vector<float> gradients;
  };
  struct segment {
    element_range elements;  // of the arena, or hash slots
    bool of_rows = false;
    std::uint64_t steps = 0;
    edl::ledger counted, applied;       // with, and without, what is accumulated
    std::vector<contribution> waiting;  // accumulated
    float rate = 1;                     // of the accumulation: the least
    std::vector<row_sums> rows{};       // accumulated, by table
  };

  void check_cuts(std::vector<checkpoint::segment> const& segments) const;
  void start(std::vector<checkpoint::segment> segments, std::vector<checkpoint::segment> row_segments);
  void start_anew(std::uint64_t version);
  template <class Work>
  void apply_or_fail(Work const& work);
  void check_usable() const;
  table_list new_tables() const;
  void check_rows(std::span<sparse::row_gradients const> rows,
                  std::function<void(std::string const&)> const& fail) const;
  void add_rows(row_sums& to, segment const& s, sparse::row_gradients const& rows, std::size_t table) const;
  void accumulate_rows(segment& s, std::span<sparse::row_gradients const> rows);
  void apply_waiting_rows(segment& s);
  void step_rows(segment& s, std::span<sparse::row_gradients const> rows, float rate);
  void step_mean_rows(segment& s, std::vector<row_sums> const& sums, float divisor, float rate);
  void snapshot_rows(ps::full_snapshot& into) const;
  void place();
  void fetch() const;
  void step(segment& s, view<float> gradients, view<float> state_change, float rate);
  void accumulate(segment const& s, view<float> gradients, view<float> state_change);
  void apply_waiting(segment& s);
  void apply_sums(segment& s);
  void merge();
  push_result advanced();
  view<float> gradients_of(segment const& s, view<float> all) const;
  view<float> change_of(segment const& s, view<float> all) const;

  store_options options_;
  rated_rule rated_;
  edl::moving_average rule_;  // of the parameters; rows have the options' rule
  std::size_t parameters_ = 0, slot_stride_ = 0;
  std::vector<std::string> slot_names_;
  arena* there_ = nullptr;
  mutable bool behind_ = false;              // what is here is older than what is there
  mutable copy_on_write variables_, slots_;  // here
  table_list tables_;
  element_range held_;               // hash slots
  std::vector<std::uint64_t> gone_;  // rows of each table that the policy has removed from tables before
  std::shared_ptr<checkpoint::row_chain> chain_;  // of these tables
  std::vector<segment> segments_;
  std::vector<float> sums_;  // accumulated gradients, then changes of state
  std::vector<std::span<float>> slot_views_;
  std::uint64_t version_ = 0;
  bool freezes_ = true;
  std::string failure_;  // why it is no version any more
  frozen<ps::snapshot> evaluations_;
  frozen<ps::full_snapshot> checkpoints_;
};

}  // namespace edl::ps

#ifdef EDL_HEADER_ONLY
#include "edl/ps/store.ipp"
#include "edl/ps/store_rows.ipp"
#endif
