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

/// What the master gives a worker to do.
struct assignment {
  task_kind kind = task_kind::wait;
  std::uint64_t lease = 0;
  task_key task;
  std::uint32_t shard = 0;
  std::string shard_name;
  std::uint64_t begin = 0, end = 0;  ///< records of the shard
  std::uint64_t version = 0;         ///< evaluation: the frozen version
  std::uint32_t applied = 0;         ///< training: minibatches known to be applied; check: the minibatch
  bool resumed = false;              ///< leased before: servers may hold more than `applied`
  std::uint32_t until = 0;           ///< minibatches to be applied in all; 0: every one that it has
  bool rests = false;                ///< to wait: nobody makes a step before a version has been evaluated
  std::uint32_t of = 0;              ///< check: the worker that has trained it,
  std::vector<std::string> addresses = {};  ///< and where that one is
};

/// What became of an assignment.
struct outcome {
  std::uint64_t lease = 0;
  std::string error;            ///< empty: done
  std::uint64_t skipped = 0;    ///< damaged records that were left out, by workers before this one too
  std::vector<double> metrics;  ///< evaluation: totals
  bool returned = false;        ///< given back undone, without fault
  std::uint32_t applied = 0;  ///< with `returned` or `error`: minibatches that every server has acknowledged
  edl::trained trained = {};  ///< by this process, since it started
  std::uint32_t task = 0;     ///< with `worst`: its number
  std::string worst = {};     ///< evaluation: what `session::inspect_with` tells of the task
  std::vector<checked_minibatch> checked = {};
  bool wrong = false;    ///< with `error`: a loss is not finite
  bool refused = false;  ///< with `error`: for what a record holds, as it is for whoever tries next
};

/// Where assignments come from: the master over the net, or its logic in this process.
class master_link {
 public:
  virtual ~master_link() = default;

  /// Asks for work; a training task, where tasks are dealt out to lanes, is that lane's. Throws edl::error
  /// when the master is gone for good.
  virtual assignment next(std::uint32_t lane) = 0;

  /// False: the lease had been given up, whatever was done under it is somebody else's now.
  virtual bool report(outcome const& o) = 0;
};

/// The parameters are those of another generation: servers were lost and all of them rolled back. Drop what
/// is leased and begin anew.
struct rolled_back : error {
  explicit rolled_back(std::string const& why, bool as_planned = false) : error(why), planned(as_planned) {}
  bool planned;  ///< nobody is lost, and nothing that was done is
};

/// A wait was given up because this process is to stop.
struct interrupted : error {
  using error::error;
};

/// This process has to end, which is nobody's fault: another takes its place, and no budget pays for that.
struct given_up : error {
  using error::error;
};

struct pushed {
  bool stale = false;         ///< refused: compute the minibatch again on newer parameters
  std::uint64_t version = 0;  ///< the newest that any server has
};

/// What a worker works off at a time, one minibatch of each in turn. It is one row of tasks, or several that
/// are dealt out to it. With none it leases nothing at all. They are its own until the generation is another.
struct lane_range {
  std::uint32_t first = 0, count = 1;
  std::uint64_t generation = 0;
  friend bool operator==(lane_range const&, lane_range const&) = default;
};

/// Where the model's variables live: parameter servers, or this process. Variables are parameters, then
/// state. Every call may throw rolled_back, and edl::error when the servers are gone for good.
class parameter_link {
 public:
  virtual ~parameter_link() = default;

  /// Copies the newest variables into `variables` and returns their version.
  virtual std::uint64_t pull(std::span<float> variables) = 0;

  /// What was pulled gave a loss that is not finite: the next `pull` has their keepers look at their memory
  /// first, where they watch it.
  virtual void doubt() {}

  /// The version of the variables where they are both kept and computed with, so that nothing is to be
  /// pulled.
  virtual std::optional<std::uint64_t> in_place() const { return {}; }

  /// Copies those of a frozen version.
  virtual void pull_frozen(std::uint64_t version, std::span<float> variables) = 0;

  /// Told while a minibatch's gradients are computed, those from number `first` on being final, so that their
  /// way may begin. What is told of is pushed next, with the same spans.
  virtual void ready(contribution const& minibatch, view<float> gradients, std::size_t first) {
    (void)minibatch, (void)gradients, (void)first;
  }

  /// Fills in the weights of all these rows, as they are now.
  virtual void pull_rows(sparse::minibatch_rows& rows) {
    (void)rows;
    throw error("this process holds none of the model's embedding tables");
  }

  /// Both `pull` and `pull_rows`, side by side where that is quicker. The rows are those of the version that
  /// is returned, or newer ones, but for what others push meanwhile.
  virtual std::uint64_t pull_with_rows(std::span<float> variables, sparse::minibatch_rows& rows) {
    std::uint64_t const version = pull(variables);
    pull_rows(rows);
    return version;
  }

  /// Applies a minibatch's gradients, computed on `version`, and the change of the state. `rows`: gradients
  /// of rows of each table. It is applied exactly once, however often it is repeated.
  virtual pushed push(contribution const& minibatch, std::uint64_t version, view<float> gradients,
                      view<float> state_change, std::span<sparse::row_gradients const> rows) = 0;

  /// How many of a task's minibatches every server has applied.
  virtual std::uint32_t position(task_key const& task, std::uint32_t minibatches) = 0;

  /// Minibatches that were pushed and are not applied yet: a task is not done before that. They are applied
  /// with more pushes, or by `idle`; what is thrown makes them void.
  virtual std::size_t pending() const { return 0; }

  virtual lane_range lanes() const { return {}; }

  /// The version that these have come to, where it is to be evaluated before the next step.
  virtual std::optional<std::uint64_t> rests_at() const { return {}; }

  /// What is computed and pushed next is of the `lane`-th of these. If it is the `last`, no other follows
  /// before the first one's next.
  virtual void turn(std::uint32_t lane, bool last) { (void)lane, (void)last; }

  /// This worker has nothing to do for now: waits, at most for `timeout`, and takes part in what the others
  /// do together meanwhile.
  virtual void idle(std::chrono::milliseconds timeout) { std::this_thread::sleep_for(timeout); }
};

/// Variables that others keep, too: all of them begin a generation together.
class remote_link : public parameter_link {
 public:
  /// That the variables here are of; 0: none yet.
  virtual std::uint64_t generation() const = 0;

  /// Waits until the next one is ready. True: it is another than the one known before.
  virtual bool refresh() = 0;
};

}  // namespace edl::worker
