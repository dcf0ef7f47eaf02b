// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/job/master/task_lanes.hpp"
#include "edl/job/master/task_plan.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// A task that is leased to a worker.
struct task_lease {
  std::uint64_t id = 0;  ///< of this lease, never reused
  task_key key;
  task_range range;
  std::uint32_t applied = 0;  ///< minibatches known to be applied: where to continue
  bool resumed = false;       ///< leased before: servers may have applied more than `applied`
  std::uint32_t until = 0;    ///< minibatches to apply in all: fewer than it has if the job ends within it
};

/// A process that a task failed on.
struct failed_on {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  friend auto operator<=>(failed_on const&, failed_on const&) = default;
};

struct expired_lease {
  std::uint64_t lease = 0;
  std::uint32_t worker = 0;
};

/// The fate of a task whose worker reported an error.
enum class task_fate {
  unknown,    ///< no such lease: it was void
  requeued,   ///< goes to another worker if there is one
  misplaced,  ///< retries used up in a lane of a single worker: another one must take the lane
  exhausted,  ///< retries used up: the job cannot be completed
};

/// Counts of completed tasks, records and minibatches.
struct task_counters {
  std::uint64_t tasks_done = 0;
  std::uint64_t records_done = 0, records_skipped = 0;  ///< skipped: damaged
  std::uint64_t minibatches_done = 0;
};

/// The sum of the counters of several epochs.
task_counters sum_of(std::map<std::uint32_t, task_counters> const& by_epoch);

/// Counts of lease events since the job began; a rollback does not undo them.
struct lease_counters {
  std::uint64_t leased = 0, repeated = 0, recovered = 0, returned = 0, failed = 0, expired = 0;
  std::uint64_t records_taken_back = 0;  ///< of completed tasks that a rollback has undone
};

/// The comparison of a ledger's counts of applied records with its marks: records that are marked but were
/// not applied, and records that were applied more than once.
struct ledger_account {
  std::uint64_t lost = 0, repeated = 0;
};

/// The waiting, leased and completed tasks of all epochs. An epoch opens when no task waits, without waiting
/// for leased ones. If a worker is lost, slow or returns a task, the task goes to the front and is leased
/// again from where it stopped. Cost: O(log leases + log shards) per operation; memory: one number per task
/// of the open epoch.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class task_queue {
 public:
  struct options {
    std::uint64_t records_per_task = 512;
    std::uint64_t minibatch_size = 64;
    std::int64_t num_epochs = 1;  ///< ≤ 0: without end
    std::uint64_t seed = 0;
    bool shuffle = true;                ///< the order of an epoch's tasks: a pure function of (seed, epoch)
    std::uint32_t max_retries = 3;      ///< attempts of a task that may fail
    std::uint64_t max_minibatches = 0;  ///< of the whole job, whose last tasks end there; 0: no limit
    duration min_timeout = std::chrono::seconds(300);  ///< no lease expires before
    std::uint64_t first_lease = 1;
    std::uint32_t lanes = 0;  ///< number of lanes of tasks (`task_lanes`); 0: any worker gets any task
    bool unwatched =
        false;  ///< no server could tell that its memory is faulty: wrong results may be its fault
  };

  /// Throws usage_error for sizes that task_plan refuses, and if the data set has no records.
  task_queue(std::vector<shard> shards, options o);

  /// The next task for a worker, with lanes: of this lane; empty if there is none now. Opens the next epoch
  /// if needed. `others`: there are more workers. One of them gets a task that failed only on this worker;
  /// until then a worker with a wrong result gets no new task.
  std::optional<task_lease> lease(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                  std::uint32_t lane = 0, bool others = false);

  /// Whether the next task has been leased before: others may wait for it.
  bool recovered_waiting(std::uint32_t lane = 0) const;

  /// Whether `lease` is valid and belongs to this worker.
  bool holds(std::uint64_t lease, std::uint32_t worker, std::uint64_t incarnation) const;

  /// Completes a task, except for `skipped` damaged records. False: the lease was void.
  bool complete(std::uint64_t lease, time_point now, std::uint64_t skipped = 0);

  /// Returns an incomplete task without a failure; every server has acknowledged `applied` of its
  /// minibatches.
  bool give_back(std::uint64_t lease, std::uint32_t applied);

  /// Returns a failed task, which counts as a retry. `wrong`: the result is not finite, so the model, the
  /// data or the machine is at fault. `others`: there are more workers; the retries are not used up before
  /// one of them has tried. `refused`: because of a record's content; another worker retries at once, to
  /// determine whether the machine read it wrongly, and there are no further retries.
  task_fate fail(std::uint64_t lease, std::uint32_t applied, std::string const& why, bool wrong = false,
                 bool others = false, bool refused = false);

  /// The processes on which the task of this lease failed since `restore`; empty: none, or no such lease.
  struct failed_before {
    std::vector<failed_on> on;
    bool wrong = false;    ///< the last time: the result was not finite
    std::string untold{};  ///< why a record was refused last, if not logged yet
  };
  failed_before failures_before(std::uint64_t lease) const;

  /// How many records may be skipped in the opened epochs: this share, and at least one in each.
  std::uint64_t may_skip(double share) const;

  /// Voids all leases of a lost worker, and returns their number. Does not count as retries.
  std::size_t recover(std::uint32_t worker);

  /// Voids one lease (e.g. an expired one), or all, in the same way.
  bool recover_lease(std::uint64_t lease);
  std::size_t recover_all();

  /// Records that the worker makes progress.
  void progressed(std::uint32_t worker, time_point now);

  /// Leases held longer than max(min_timeout, 3 × the longest completed), from the dispatch or the worker's
  /// last completed task. Until a task has been completed, a worker that makes progress is not slow. Changes
  /// nothing.
  std::vector<expired_lease> expired(time_point now) const;

  /// Starts over from the ledger `applied`. Voids all leases, clears retries, and leases exactly what the
  /// ledger lacks, even if leasing had been stopped. Throws error, changing nothing, if it names tasks that
  /// this data set does not have.
  void restore(ledger const& applied);

  /// The account of the restored ledger. Empty: it lacks a count, because servers' histories differed, or
  /// none was restored.
  std::optional<ledger_account> restored_account() const { return restored_account_; }

  /// Starts no other task. Started ones are completed, if necessary by other workers, so that all servers end
  /// in the same state.
  void stop_leasing() { stopped_ = true; }

  /// Leases nothing any more. Started tasks stay as they are. `restore` ends that.
  void halt();

  /// The task of `lease`, if it is valid.
  std::optional<task_key> key_of(std::uint64_t lease) const;

  /// Whether no task waits or is leased, and no epoch follows; until then waiting workers may get recovered
  /// tasks.
  bool finished() const;

  /// The last failed task, with the place and the reason.
  std::string const& reason() const { return reason_; }

  task_plan const& plan() const { return plan_; }
  std::uint32_t epochs_opened() const { return next_epoch_; }
  std::size_t leased() const { return leases_.size(); }

  /// The oldest valid lease.
  struct lease_age {
    std::uint32_t worker = 0;
    time_point since;
  };
  std::optional<lease_age> oldest() const;

  /// Number of incomplete tasks of the opened epochs.
  std::uint64_t remaining() const { return front_.size() + back_.size() + unseen_ + leases_.size(); }

  std::optional<std::uint64_t> total_tasks() const;    ///< of all epochs; empty if unlimited
  std::optional<std::uint64_t> total_records() const;  ///< likewise
  task_counters const& done() const { return done_; }
  /// Includes the applied parts of restored tasks that no worker continues, as at the end of a job.
  std::map<std::uint32_t, task_counters> done_by_epoch() const;
  lease_counters const& history() const { return history_; }
  std::uint64_t next_lease() const { return next_lease_; }

  /// The same counts for a ledger: the job's account, by epoch. Throws as `restore` does.
  std::map<std::uint32_t, task_counters> account(ledger const& applied) const;

 private:
  struct waiting {
    task_key key;
    std::uint32_t applied = 0;
    bool resumed = false;
    std::uint32_t lane = 0;
    std::uint32_t until = 0;
  };
  struct held {
    waiting task;
    std::uint32_t worker = 0;
    std::uint64_t incarnation = 0;
    time_point since;
  };
  struct holder {
    std::vector<std::uint64_t> leases;
    time_point last_done, last_progress;
  };
  using lease_map = std::map<std::uint64_t, held>;

  std::uint32_t most_epochs() const;
  std::uint64_t closed_in(std::uint32_t epoch) const;
  bool open_epoch();
  std::optional<waiting> next(failed_on const& by, std::uint32_t lane, bool others);
  bool failed_here_alone(task_key const& task, failed_on const& here) const;
  std::optional<waiting> begin_next(std::uint32_t lane);
  bool may_begin() const;
  std::uint64_t room() const;
  waiting take(lease_map::iterator it);
  void put_back(lease_map::iterator it, std::uint32_t applied);
  void leave(waiting const& task);
  void count(std::uint32_t epoch, task_counters const& more);

  task_plan plan_;
  options options_;
  std::optional<task_lanes> lanes_;
  std::deque<waiting> front_, back_;
  std::vector<std::uint32_t> order_;  // of the newest epoch
  std::size_t cursor_ = 0;
  std::uint64_t unseen_ = 0;  // tasks of the newest epoch: neither leased yet nor closed when it began
  std::uint32_t next_epoch_ = 0;
  ledger restored_;
  std::optional<ledger_account> restored_account_;
  lease_map leases_;  // by id, so by age
  std::unordered_map<std::uint32_t, holder> holders_;
  struct failures {
    std::uint32_t times = 0;
    std::string why;            // of the last one
    std::vector<failed_on> on;  // each once
    bool wrong = false;         // the last one
    bool in_doubt = false;      // another worker has to find out whose fault it is
    bool untold = false;        // `why` has not been logged yet
  };
  std::map<task_key, failures> failures_;
  std::uint64_t next_lease_;
  std::uint64_t begun_ = 0;  // minibatches of tasks that are leased, or were and wait again
  // The applied part of restored tasks that are not leased yet.
  std::map<task_key, std::uint32_t> parts_;
  std::uint64_t in_parts_ = 0;
  duration longest_{};
  bool stopped_ = false, halted_ = false;
  std::string reason_;
  task_counters done_;
  std::map<std::uint32_t, task_counters> by_epoch_;
  lease_counters history_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/task_queue.ipp"
#endif
