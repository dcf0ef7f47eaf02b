// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/span.hpp"
#include "edl/core/task_kind.hpp"
#include "edl/core/trained.hpp"

namespace edl::worker {

/// An assignment from the master to a worker.
struct assignment {
  task_kind kind = task_kind::wait;
  std::uint64_t lease = 0;
  task_key task;
  std::uint32_t shard = 0;
  std::string shard_name;
  std::uint64_t begin = 0, end = 0;  ///< records of the shard
  std::uint64_t version = 0;         ///< evaluation: the frozen version
  std::uint32_t applied = 0;         ///< training: minibatches known to be applied; check: the minibatch
  bool resumed = false;              ///< leased before: servers may have applied more than `applied`
  std::uint32_t until = 0;           ///< minibatches to apply in all; 0: all
  float rate = 1;                    ///< training: the factor of the learning rate
  bool rests = false;                ///< to wait: no step is made before a version has been evaluated
  std::uint32_t of = 0;              ///< check: the worker that has trained it,
  std::vector<std::string> addresses = {};  ///< and its addresses
};

/// The outcome of an assignment.
struct outcome {
  std::uint64_t lease = 0;
  std::string error;            ///< empty: done
  std::uint64_t skipped = 0;    ///< damaged records that were skipped, also by earlier workers
  std::vector<double> metrics;  ///< evaluation: totals
  bool returned = false;        ///< handed back incomplete, without a failure
  std::uint32_t applied = 0;  ///< with `returned` or `error`: minibatches that every server has acknowledged
  edl::trained trained = {};  ///< by this process, since it started
  std::uint32_t task = 0;     ///< with `worst`: its number
  std::string worst = {};     ///< evaluation: the text of `session::inspect_with` about the task
  std::vector<checked_minibatch> checked = {};
  bool wrong = false;    ///< with `error`: a loss is not finite
  bool refused = false;  ///< with `error`: because of a record's content
};

/// The source of assignments: the master over the network, or its logic in this process.
class master_link {
 public:
  virtual ~master_link() = default;

  /// Requests work; with lanes, a training task is of this lane. Throws edl::error if the master is lost for
  /// good.
  virtual assignment next(std::uint32_t lane) = 0;

  /// False: the lease was void; another worker has the task now.
  virtual bool report(outcome const& o) = 0;
};

/// The parameters are of another generation: servers were lost and all of them rolled back. Drop all leases
/// and begin anew.
struct rolled_back : error {
  explicit rolled_back(std::string const& why, bool as_planned = false) : error(why), planned(as_planned) {}
  bool planned;  ///< no process and no work is lost
};

/// A wait was abandoned because this process must stop.
struct interrupted : error {
  using error::error;
};

/// This process must exit, without a failure: another takes its place, and it does not count against a
/// budget.
struct given_up : error {
  using error::error;
};

struct pushed {
  bool stale = false;         ///< refused: recompute the minibatch on newer parameters
  std::uint64_t version = 0;  ///< the newest that any server has
};

/// The lanes of a worker, of which it trains one minibatch each in turn: one, or several that are assigned to
/// it. Without any it leases nothing. They are its own until the generation changes.
struct lane_range {
  std::uint32_t first = 0, count = 1;
  std::uint64_t generation = 0;
  friend bool operator==(lane_range const&, lane_range const&) = default;
};

/// The keeper of the model's variables: parameter servers, or this process. Variables are parameters, then
/// state. Every call may throw rolled_back, and edl::error if the servers are lost for good.
class parameter_link {
 public:
  virtual ~parameter_link() = default;

  /// Copies the newest variables into `variables` and returns their version.
  virtual std::uint64_t pull(std::span<float> variables) = 0;

  /// Call when the pulled variables gave a loss that is not finite: before the next `pull` the keepers verify
  /// their memory, if they have checksums.
  virtual void doubt() {}

  /// The version of the variables if they are computed with in place, so that no pull is needed.
  virtual std::optional<std::uint64_t> in_place() const { return {}; }

  /// Copies the variables of a frozen version.
  virtual void pull_frozen(std::uint64_t version, std::span<float> variables) = 0;

  /// Called while a minibatch's gradients are computed, when those from number `first` on are final, so that
  /// sending may begin. They are pushed next, with the same spans.
  virtual void ready(contribution const& minibatch, view<float> gradients, std::size_t first) {
    (void)minibatch, (void)gradients, (void)first;
  }

  /// Fills in the current weights of all these rows.
  virtual void pull_rows(sparse::minibatch_rows& rows) {
    (void)rows;
    throw error("this process holds none of the model's embedding tables");
  }

  /// `pull` and `pull_rows` together, in parallel if that is faster. The rows are of the returned version or
  /// newer, because others may push meanwhile.
  virtual std::uint64_t pull_with_rows(std::span<float> variables, sparse::minibatch_rows& rows) {
    std::uint64_t const version = pull(variables);
    pull_rows(rows);
    return version;
  }

  /// Applies a minibatch's gradients, computed on `version`, and the change of the state. `rows`: gradients
  /// of rows of each table. It is applied exactly once, even if the push is repeated.
  virtual pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
                      view<float> state_change, std::span<sparse::row_gradients const> rows) = 0;

  /// How many of a task's minibatches every server has applied.
  virtual std::uint32_t position(task_key const& task, std::uint32_t minibatches) = 0;

  /// Number of minibatches that were pushed but are not applied yet: a task is complete only after that. They
  /// are applied with further pushes, or by `idle`; an exception makes them void.
  virtual std::size_t pending() const { return 0; }

  /// Pushes what waits here for the end of a round of local steps (`local_rounds`). Call before a lease is
  /// returned, because its minibatches then count as applied.
  virtual void end_round() {}

  virtual lane_range lanes() const { return {}; }

  /// The version that these have reached, if it must be evaluated before the next step.
  virtual std::optional<std::uint64_t> rests_at() const { return {}; }

  /// Declares that the next minibatch is of the `lane`-th lane. If it is the `last`, the first lane's is
  /// next.
  virtual void turn(std::uint32_t lane, bool last) { (void)lane, (void)last; }

  /// Call when this worker has no work: waits, at most for `timeout`, and takes part in the others' joint
  /// operations meanwhile.
  virtual void idle(std::chrono::milliseconds timeout) { std::this_thread::sleep_for(timeout); }
};

/// Variables that are shared with others: all begin a generation together.
class remote_link : public parameter_link {
 public:
  /// The generation of the variables here; 0: none yet.
  virtual std::uint64_t generation() const = 0;

  /// Waits until a generation is ready. True: it differs from the one known before.
  virtual bool refresh() = 0;
};

}  // namespace edl::worker
