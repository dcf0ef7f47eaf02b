// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edl/job/master/task_queue.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

/// A version of the model to evaluate.
struct evaluated_version {
  std::uint64_t version = 0;
  bool frozen = true;  ///< held by the servers until released; otherwise it is their current one, and rests
};

struct evaluation_lease {
  task_lease task;
  evaluated_version evaluated;
};

struct evaluation_result {
  evaluated_version evaluated;
  std::vector<double> totals;  ///< sums over all records, of what the tasks reported
  std::uint64_t records = 0;
};

/// Evaluates versions of the model on the validation data, in order, one at a time. Each task's sums count
/// once, when it is reported complete. They are added in the order of the tasks, so that results are bitwise
/// equal.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class evaluation {
 public:
  struct options {
    task_queue::options tasks;  ///< one epoch in order, whatever it says
    duration start_delay{};     ///< versions reached earlier than this after the start are skipped
    duration throttle{};        ///< so are those reached sooner than this after the last accepted one
    bool judged = false;        ///< a version is kept until `judged` reports that its result has been used
  };

  /// Lease ids have this bit set, which distinguishes them from those of training tasks.
  static constexpr std::uint64_t lease_bit = std::uint64_t{1} << 63;

  /// With an empty list of shards every version is skipped.
  evaluation(std::vector<shard> shards, options o, time_point start);

  /// False: skipped (already seen, older, throttled, or no data); a frozen version may then be released at
  /// once.
  bool version_reached(evaluated_version v, time_point now);

  /// The servers pause at `version`: it is their current one, even if not each of them has frozen it.
  void rests(std::uint64_t version);

  std::optional<evaluation_lease> lease(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                        bool others = false);
  bool holds(std::uint64_t lease, std::uint32_t worker, std::uint64_t incarnation) const;

  /// Counts a task's sums, and its `skipped` damaged records. False: no such lease. Throws data_error when
  /// there are more or fewer sums than in the reports before; the task is then still leased.
  bool complete(std::uint64_t lease, std::vector<double> const& sums, time_point now,
                std::uint64_t skipped = 0);
  bool give_back(std::uint64_t lease);

  static bool finite(std::vector<double> const& sums);  ///< all of them

  /// Whether another worker should compute these sums: they are not finite, no other worker has failed at the
  /// task, and no such sums have been counted in this evaluation, where they would be the model's own.
  bool doubts(std::uint64_t lease, std::vector<double> const& sums, bool others) const;

  /// As `task_queue::fail` and `task_queue::failures_before`.
  task_fate fail(std::uint64_t lease, std::string const& why, bool wrong = false, bool others = false,
                 bool refused = false);
  task_queue::failed_before failures_before(std::uint64_t lease) const;
  std::size_t recover(std::uint32_t worker);
  bool recover_lease(std::uint64_t lease);
  std::size_t recover_all();
  std::vector<expired_lease> expired(time_point now) const;
  std::string const& reason() const { return reason_; }

  /// Abandons the evaluation in progress, and returns its version; the next one begins.
  evaluated_version give_up();

  /// The result of the version just completed, once; the next one begins.
  std::optional<evaluation_result> take_result();

  /// With `options::judged`: call when the result of this version has been used; the next one begins. False:
  /// the version has been dropped meanwhile.
  bool judged(std::uint64_t version);

  /// Whether the result of this version has not been used yet.
  bool to_be_judged(std::uint64_t version) const { return judging_ && judging_->version == version; }

  /// Whether no evaluation or use of a result is pending up to this version.
  bool done_up_to(std::uint64_t version) const;

  /// The newest version that has been completed; `resume_after` it, a master that follows takes newer ones
  /// only.
  std::optional<std::uint64_t> completed() const { return last_completed_; }
  void resume_after(std::uint64_t version) { last_version_ = last_completed_ = version; }

  /// Whether an evaluation of this frozen version is running or pending.
  bool wants_frozen(std::uint64_t version) const;

  /// Drops frozen versions that no keeper has any more: those for which `held` returns false. With
  /// `options::judged` they are accepted when they are reported again, if no newer version is kept.
  void forget_unless(std::function<bool(std::uint64_t version)> const& held);

  /// Drops newer versions, which no longer exist.
  void forget_after(std::uint64_t version);

  /// Drops everything: the model is at `version` again.
  void roll_back(std::uint64_t version);

  bool idle() const { return !active_ && !judging_ && waiting_.empty(); }
  bool empty() const { return shards_.empty(); }
  std::size_t pending() const { return waiting_.size() + (active_ ? 1 : 0) + (judging_ ? 1 : 0); }
  task_queue const* active() const { return active_ ? &active_->queue : nullptr; }
  /// The tasks of the current evaluation, or of the last one.
  task_queue const* newest() const { return active_ ? &active_->queue : last_ ? &*last_ : nullptr; }

 private:
  struct evaluation_run {
    evaluated_version evaluated;
    task_queue queue;
    std::vector<double> totals;
    bool reported = false;
    bool not_finite = false;                             // some sums are not, and that is the model's own
    std::map<std::uint32_t, std::vector<double>> early;  // sums of tasks after one that is incomplete
    std::uint32_t next = 0;                              // the first incomplete task
  };

  void begin_next();
  void drop_active();

  std::vector<shard> shards_;
  options options_;
  time_point start_;
  std::optional<time_point> last_taken_;
  std::optional<std::uint64_t> last_version_, last_completed_;
  std::deque<evaluated_version> waiting_;
  std::optional<evaluation_run> active_;
  std::optional<task_queue> last_;  // tasks of the previous evaluation
  std::optional<evaluated_version> judging_;
  std::uint64_t next_lease_ = lease_bit;
  std::string reason_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/evaluation.ipp"
#endif
