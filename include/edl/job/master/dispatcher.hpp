// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/job/master/health/gradient_checks.hpp"
#include "edl/job/master/job.hpp"
#include "edl/job/master/job_state.hpp"
#include "edl/job/master/model_versions.hpp"
#include "edl/job/master/speed_log.hpp"
#include "edl/job/master/task_queue.hpp"

namespace edl::master {

/// Leases tasks to workers: of training or prediction, or of the evaluation in progress. Tasks are completed,
/// returned, failed, or taken from a lost or slow worker. A job whose tasks cannot be completed fails. Its
/// arguments must outlive it; the caller checks membership.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class dispatcher {
 public:
  /// `tasks`: of training or prediction. Throws usage_error if there is no work.
  dispatcher(job_options const& options, job_state& job, model_versions& versions,
             task_queue::options const& tasks);

  /// The tasks of training or prediction; null for a job that only evaluates.
  task_queue const* tasks() const { return tasks_ ? &*tasks_ : nullptr; }

  /// The tasks that measure the job's progress; null: there are none yet.
  task_queue const* counted_tasks() const { return tasks_ ? &*tasks_ : versions_.evaluations().newest(); }
  std::uint64_t records_done() const { return tasks_ ? tasks_->done().records_done : 0; }
  bool finished() const { return tasks_ ? tasks_->finished() : versions_.evaluations().idle(); }
  speed_log const& speeds() const { return speeds_; }

  /// As `coordinator::request_task`, for a member while tasks are leased.
  task_reply request(std::uint32_t worker, std::uint64_t incarnation, time_point now, std::uint32_t lane,
                     std::uint64_t rests_at, membership const& workers = membership());

  /// False: the lease was void, and the report does not count.
  bool report(task_report const& r, time_point now, membership const& workers = membership());

  gradient_checks& checks() { return checks_; }
  gradient_checks const& checks() const { return checks_; }

  void progressed(std::uint32_t worker, time_point now);

  /// A worker on which tasks fail that others complete: its machine, or its copy of the model, is faulty.
  struct suspect {
    std::uint32_t worker = 0;
    std::uint64_t incarnation = 0;
    std::string why;
  };
  /// Those found since the last call.
  std::vector<suspect> take_suspects() { return std::exchange(suspects_, {}); }

  /// A worker is lost: returns how many tasks go to others.
  std::size_t lost(std::uint32_t worker);

  /// Takes tasks from workers that are too slow. Returns workers to replace instead.
  std::vector<std::uint32_t> recover_slow(time_point now);

  /// Sets the factors of the learning rate for tasks that are leased from now on.
  void set_rates(rate_factors rates) { rates_ = std::move(rates); }

  /// Starts no more tasks: as `coordinator::stop`.
  void stop(std::uint64_t at);

  // ---- Generations ----

  /// Voids all leases.
  void interrupt();

  /// Starts over from a ledger. Throws error if it belongs to other data.
  void go_back_to(std::uint64_t version, ledger const& applied);
  void go_on_from(std::uint64_t version, ledger const& applied);

 private:
  std::optional<task_reply> lease_work(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                       std::uint32_t lane, bool others);
  std::optional<task_reply> lease_evaluation(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                             bool others);
  bool report_evaluation(task_report const& r, time_point now, membership const& workers);
  void blame(task_queue::failed_before const& failed, task_report const& done_by);
  bool report_work(task_report const& r, time_point now, membership const& workers);
  std::optional<task_reply> lease_check(std::uint32_t worker, membership const& workers);
  void decide(task_fate fate, std::string const& reason);
  std::string damage_of(task_queue const& of) const;
  void fail_evaluation(std::string const& why);
  void stop_tasks();

  job_options const& options_;
  job_state& job_;
  model_versions& versions_;
  std::optional<task_queue> tasks_;
  std::set<std::uint32_t> training_first_;   // workers that returned an evaluation task
  std::optional<std::uint64_t> stopped_at_;  // the version that decided it
  rate_factors rates_;
  std::uint32_t epochs_said_ = 0;
  speed_log speeds_;
  gradient_checks checks_;
  std::map<failed_on, unsigned> blamed_;  // consecutive tasks that failed there and completed elsewhere
  std::vector<suspect> suspects_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/dispatcher.ipp"
#endif
