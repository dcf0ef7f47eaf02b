// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/dispatcher.hpp"

namespace edl::master {

namespace detail {

// A worker that fails at this many tasks in a row, which others then complete, is replaced.
inline constexpr unsigned most_blamed = 3;

inline bool others_than(std::uint32_t worker, membership const& workers) {
  return workers.all().size() > (workers.find(worker) ? 1 : 0);
}

EDL_INLINE task_reply reply_of(task_kind kind, task_lease const& l, std::uint64_t generation) {
  return {.kind = kind,
          .lease = l.id,
          .key = l.key,
          .range = l.range,
          .generation = generation,
          .applied = l.applied,
          .resumed = l.resumed,
          .until = l.until};
}

}  // namespace detail

EDL_INLINE dispatcher::dispatcher(job_options const& options, job_state& job, model_versions& versions,
                                  task_queue::options const& tasks)
    : options_(options), job_(job), versions_(versions), checks_(options.replicas) {
  if (options.type == job_type::evaluation_only) return;
  tasks_.emplace(options.type == job_type::prediction_only ? options.prediction : options.training, tasks);
  if (options.trains()) tasks_->restore(options.start.applied);
}

EDL_INLINE task_reply dispatcher::request(std::uint32_t worker, std::uint64_t incarnation, time_point now,
                                          std::uint32_t lane, std::uint64_t rests_at,
                                          membership const& workers) {
  invariant(job_.leasing(), "tasks are leased by a generation that trains");
  task_reply nothing;
  nothing.generation = job_.generation();
  // A frozen version is complete once every push that contributed to it has reached every server. If a worker
  // is lost during a push, the worker that takes over its task completes that push, so this task must not
  // wait behind the evaluation. A worker that returned an evaluation task must not get it again while there
  // is other work.
  std::optional<task_reply> reply;
  bool const others = detail::others_than(worker, workers);
  if (options_.rests_to_evaluate &&
      (versions_.evaluations().pending() > 0 || versions_.unannounced(rests_at))) {
    nothing.rests = true;
    reply = lease_evaluation(worker, incarnation, now, others);
    return reply ? *reply : nothing;
  }
  if (options_.checks) reply = lease_check(worker, workers);
  if (reply) return *reply;
  if ((tasks_ && tasks_->recovered_waiting(lane)) || training_first_.contains(worker))
    reply = lease_work(worker, incarnation, now, lane, others);
  if (!reply) reply = lease_evaluation(worker, incarnation, now, others);
  // Few versions can stay frozen, and none whose evaluation decides something may be dropped: training waits.
  // Lanes continue together, because a step needs all of them.
  bool const waits = options_.judges && options_.lanes == 0 && versions_.evaluations().pending() > 0;
  if (!reply && !waits) reply = lease_work(worker, incarnation, now, lane, others);
  return reply ? *reply : nothing;
}

EDL_INLINE std::optional<task_reply> dispatcher::lease_evaluation(std::uint32_t worker,
                                                                  std::uint64_t incarnation, time_point now,
                                                                  bool others) {
  auto const l = versions_.evaluations().lease(worker, incarnation, now, others);
  if (!l) return std::nullopt;
  speeds_.interrupted();
  task_reply reply = detail::reply_of(task_kind::evaluation, l->task, job_.generation());
  reply.version = l->evaluated.version;
  reply.frozen = l->evaluated.frozen;
  return reply;
}

EDL_INLINE std::optional<task_reply> dispatcher::lease_check(std::uint32_t worker,
                                                             membership const& workers) {
  auto const c = checks_.lease(worker, workers);
  if (!c) return std::nullopt;
  return task_reply{.kind = task_kind::check,
                    .lease = c->lease,
                    .key = c->task,
                    .range = c->range,
                    .generation = job_.generation(),
                    .applied = c->minibatch,
                    .until = c->minibatch + 1,
                    .of = c->of};
}

EDL_INLINE std::optional<task_reply> dispatcher::lease_work(std::uint32_t worker, std::uint64_t incarnation,
                                                            time_point now, std::uint32_t lane, bool others) {
  auto const l = tasks_ ? tasks_->lease(worker, incarnation, now, lane, others) : std::nullopt;
  if (!l) return std::nullopt;
  training_first_.erase(worker);
  if (options_.trains() && tasks_->epochs_opened() > epochs_said_) {
    epochs_said_ = tasks_->epochs_opened();
    job_.say(severity::info, fmt::format("Starting epoch {}", epochs_said_ - 1), topic::epoch);
    job_.say(severity::info,
             fmt::format("{} created with total of {}.", counted(tasks_->plan().tasks(), "task"),
                         counted(tasks_->plan().records(), "record")));
  }
  task_reply reply = detail::reply_of(options_.trains() ? task_kind::training : task_kind::prediction, *l,
                                      job_.generation());
  if (!rates_.empty()) reply.rate = rates_.rbegin()->second;
  return reply;
}

EDL_INLINE bool dispatcher::report(task_report const& r, time_point now, membership const& workers) {
  if (r.lease & evaluation::lease_bit) return report_evaluation(r, now, workers);
  if (!(r.lease & gradient_checks::lease_bit)) return report_work(r, now, workers);
  bool const done = r.error.empty() && !r.returned && !r.checked.empty();
  return checks_.answered(r.lease, r.worker, done ? std::optional(r.checked.back()) : std::nullopt);
}

EDL_INLINE bool dispatcher::report_evaluation(task_report const& r, time_point now,
                                              membership const& workers) {
  if (!versions_.evaluations().holds(r.lease, r.worker, r.incarnation)) return false;
  if (r.returned) {
    training_first_.insert(r.worker);
    return versions_.evaluations().give_back(r.lease);
  }
  // Sums that are not finite are the model's own only if another worker has them, too.
  bool const others = detail::others_than(r.worker, workers),
             doubted = r.error.empty() && versions_.evaluations().doubts(r.lease, r.metrics, others);
  std::string why = doubted ? "its sums are not finite" : r.error;
  if (why.empty()) try {
      auto const failed = versions_.evaluations().failures_before(r.lease);
      bool const accepted = versions_.evaluations().complete(r.lease, r.metrics, now, r.skipped);
      if (task_queue const* const of = versions_.evaluations().active(); accepted && of)
        if (std::string const damage = damage_of(*of); !damage.empty()) fail_evaluation(damage);
      if (accepted && failed.wrong && evaluation::finite(r.metrics)) blame(failed, r);
      return accepted;
    } catch (data_error const& e) {
      why = e.what();
    }
  task_fate const fate = versions_.evaluations().fail(r.lease, why, doubted, others, r.refused);
  if (fate == task_fate::exhausted)
    fail_evaluation(versions_.evaluations().reason());
  else
    decide(fate, versions_.evaluations().reason());
  return true;
}

// Fails the job. Once training is over it only gives the evaluation up, so that the trained model is kept.
EDL_INLINE void dispatcher::fail_evaluation(std::string const& why) {
  if (!options_.trains() || job_.phase() != job_phase::closing) return job_.fail(why);
  versions_.give_up_evaluation(why);
}

EDL_INLINE bool dispatcher::report_work(task_report const& r, time_point now, membership const& workers) {
  if (!tasks_ || !tasks_->holds(r.lease, r.worker, r.incarnation)) return false;
  if (r.returned) return tasks_->give_back(r.lease, options_.trains() ? r.applied : 0);
  if (!r.error.empty()) {
    task_fate const fate = tasks_->fail(r.lease, options_.trains() ? r.applied : 0, r.error, r.wrong,
                                        detail::others_than(r.worker, workers), r.refused);
    if (fate == task_fate::misplaced)
      suspects_.push_back({r.worker, r.incarnation, "another worker is to try the task that fails there"});
    decide(fate, tasks_->reason());
    return true;
  }
  auto const failed = tasks_->failures_before(r.lease);
  if (!failed.untold.empty())
    job_.say(
        severity::warning,
        fmt::format("a task that failed on worker {} is done on worker {}, so that machine may be faulty: {}",
                    failed.on.back().worker, r.worker, failed.untold));
  blame(failed, r);
  if (auto const of = tasks_->key_of(r.lease); of && options_.checks && !r.checked.empty())
    checks_.trained(r.worker, *of, tasks_->plan().range(of->index), r.checked, workers);
  std::uint64_t const before = tasks_->done().records_done;
  tasks_->complete(r.lease, now, r.skipped);
  if (std::string const damage = damage_of(*tasks_); !damage.empty()) job_.fail(damage);
  speeds_.completed(r.worker, tasks_->done().records_done - before, now);
  job_.say(severity::debug,
           fmt::format("Task:{} completed, {} remaining tasks", r.lease, tasks_->remaining()));
  return true;
}

// A single result that is not finite here but finite elsewhere is enough: everything from this worker is in
// doubt.
EDL_INLINE void dispatcher::blame(task_queue::failed_before const& failed, task_report const& done_by) {
  failed_on const here{done_by.worker, done_by.incarnation};
  blamed_.erase(here);
  for (failed_on const& f : failed.on) {
    if (f == here || (++blamed_[f] < detail::most_blamed && !failed.wrong)) continue;
    blamed_.erase(f);
    suspects_.push_back(
        {f.worker, f.incarnation,
         fmt::format("tasks fail on it that others complete, the last one worker {}", here.worker)});
  }
}

EDL_INLINE void dispatcher::decide(task_fate fate, std::string const& reason) {
  if (fate == task_fate::exhausted) return job_.fail(reason);
  job_.say(severity::warning, reason);
}

/// Why a job with this many damaged records must end; empty: it need not.
EDL_INLINE std::string dispatcher::damage_of(task_queue const& of) const {
  std::uint64_t const skipped = of.done().records_skipped;
  if (skipped <= of.may_skip(double(options_.max_damaged))) return {};
  return fmt::format(
      "{} of {} are skipped as damaged{}, and --max_damaged={} allows {}: mend the data, or allow more",
      skipped, counted(of.plan().records(), "record"),
      of.epochs_opened() > 1 ? fmt::format(" in {} epochs", of.epochs_opened()) : "", options_.max_damaged,
      of.may_skip(double(options_.max_damaged)));
}

EDL_INLINE void dispatcher::progressed(std::uint32_t worker, time_point now) {
  if (tasks_) tasks_->progressed(worker, now);
}

EDL_INLINE std::size_t dispatcher::lost(std::uint32_t worker) {
  training_first_.erase(worker);
  speeds_.gone(worker);
  checks_.gone(worker);
  return (tasks_ ? tasks_->recover(worker) : 0) + versions_.evaluations().recover(worker);
}

EDL_INLINE std::vector<std::uint32_t> dispatcher::recover_slow(time_point now) {
  auto slow = tasks_ ? tasks_->expired(now) : std::vector<expired_lease>{};
  auto const more = versions_.evaluations().expired(now);
  slow.insert(slow.end(), more.begin(), more.end());
  std::vector<std::uint32_t> replaced;
  for (auto const& [lease, worker] : slow) {
    if (options_.replace_slow)
      replaced.push_back(worker);
    else if ((lease & evaluation::lease_bit) ? versions_.evaluations().recover_lease(lease)
                                             : tasks_->recover_lease(lease))
      job_.say(severity::warning,
               fmt::format("worker {} takes too long for its task, which goes to another", worker));
  }
  return replaced;
}

EDL_INLINE void dispatcher::stop(std::uint64_t at) {
  if (!tasks_) return;
  stopped_at_ = at;
  stop_tasks();
}

EDL_INLINE void dispatcher::stop_tasks() {
  if (options_.rests_to_evaluate)
    tasks_->halt();
  else
    tasks_->stop_leasing();
}

// ---- Generations ----

EDL_INLINE void dispatcher::interrupt() {
  speeds_.interrupted();
  training_first_.clear();
  checks_.clear();
  if (tasks_) tasks_->recover_all();
}

EDL_INLINE void dispatcher::go_back_to(std::uint64_t version, ledger const& applied) {
  go_on_from(version, applied);
  checks_.go_back_to(version);
  if (!options_.replicas) epochs_said_ = 0;
}

EDL_INLINE void dispatcher::go_on_from(std::uint64_t version, ledger const& applied) {
  if (!options_.trains()) return;
  invariant(tasks_->leased() == 0, "nothing is leased when tasks start over");
  tasks_->restore(applied);
  rates_.erase(rates_.upper_bound(version), rates_.end());
  if (!stopped_at_) return;
  if (version >= *stopped_at_) return stop_tasks();
  stopped_at_.reset();
}

}  // namespace edl::master
