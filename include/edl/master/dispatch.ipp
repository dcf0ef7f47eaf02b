// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

namespace detail {

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

EDL_INLINE task_reply coordinator::request_task(std::uint32_t worker, std::uint64_t incarnation,
                                                time_point now, std::uint32_t lane, std::uint64_t rests_at) {
  task_reply nothing;
  nothing.generation = generation_;
  if (over()) nothing.kind = task_kind::finished;
  if (over() || !workers_.seen(worker, incarnation, now) || !leasing() || suspending_) return nothing;
  // A frozen version is complete once every push that made it has reached every server. The push that a lost
  // worker left half done is completed by who takes over its task, so that task may not wait behind the
  // evaluation; nor may a worker that returned an evaluation task be given it again while there is something
  // else to do.
  std::optional<task_reply> reply;
  if (options_.rests_to_evaluate && (evaluation_.pending() > 0 || unannounced(rests_at))) {
    nothing.rests = true;
    reply = lease_evaluation(worker, incarnation, now);
    return reply ? *reply : nothing;
  }
  if ((tasks_ && tasks_->recovered_waiting(lane)) || training_first_.contains(worker))
    reply = lease_work(worker, incarnation, now, lane);
  if (!reply) reply = lease_evaluation(worker, incarnation, now);
  // Only so many versions stay frozen, and none that decides on something is to be given up. Lanes go on
  // together, or a step would lack one.
  bool const waits = options_.judges && options_.lanes == 0 && evaluation_.pending() > 0;
  if (!reply && !waits) reply = lease_work(worker, incarnation, now, lane);
  return reply ? *reply : nothing;
}

EDL_INLINE std::optional<task_reply> coordinator::lease_evaluation(std::uint32_t worker,
                                                                   std::uint64_t incarnation,
                                                                   time_point now) {
  auto const l = evaluation_.lease(worker, incarnation, now);
  if (!l) return std::nullopt;
  speeds_.interrupted();
  task_reply reply = detail::reply_of(task_kind::evaluation, l->task, generation_);
  reply.version = l->of.version;
  reply.frozen = l->of.frozen;
  return reply;
}

EDL_INLINE std::optional<task_reply> coordinator::lease_work(std::uint32_t worker, std::uint64_t incarnation,
                                                             time_point now, std::uint32_t lane) {
  auto const l = tasks_ ? tasks_->lease(worker, incarnation, now, lane) : std::nullopt;
  if (!l) return std::nullopt;
  training_first_.erase(worker);
  if (trains() && tasks_->epochs_opened() > epochs_said_) {
    epochs_said_ = tasks_->epochs_opened();
    say(severity::info, fmt::format("Starting epoch {}", epochs_said_ - 1));
    say(severity::info, fmt::format("{} created with total of {}.", counted(tasks_->plan().tasks(), "task"),
                                    counted(tasks_->plan().records(), "record")));
  }
  return detail::reply_of(trains() ? task_kind::training : task_kind::prediction, *l, generation_);
}

EDL_INLINE bool coordinator::report_task(task_report const& r, time_point now) {
  if (over() || !workers_.seen(r.worker, r.incarnation, now)) return false;
  bool const accepted = (r.lease & evaluation::lease_bit) ? report_evaluation(r, now) : report_work(r, now);
  if (accepted && !over()) advance();
  return accepted;
}

EDL_INLINE bool coordinator::report_evaluation(task_report const& r, time_point now) {
  if (!evaluation_.holds(r.lease, r.worker, r.incarnation)) return false;
  if (r.returned) {
    training_first_.insert(r.worker);
    return evaluation_.give_back(r.lease);
  }
  std::string why = r.error;
  if (why.empty()) try {
      bool const accepted = evaluation_.complete(r.lease, r.metrics, now, r.skipped);
      if (task_queue const* const of = evaluation_.active(); accepted && of)
        if (std::string const damage = damage_of(*of); !damage.empty()) fail_evaluation(damage);
      return accepted;
    } catch (data_error const& e) {
      why = e.what();
    }
  task_fate const fate = evaluation_.fail(r.lease, why);
  if (fate == task_fate::exhausted)
    fail_evaluation(evaluation_.reason());
  else
    conclude(fate, evaluation_.reason());
  return true;
}

// What is trained by then is kept.
EDL_INLINE void coordinator::fail_evaluation(std::string const& why) {
  if (!trains() || phase_ != phase::closing) return fail(why);
  unevaluated_ = why;
  release(evaluation_.give_up());
}

EDL_INLINE bool coordinator::report_work(task_report const& r, time_point now) {
  if (!tasks_ || !tasks_->holds(r.lease, r.worker, r.incarnation)) return false;
  if (r.returned) return tasks_->give_back(r.lease, trains() ? r.applied : 0);
  if (!r.error.empty()) {
    conclude(tasks_->fail(r.lease, trains() ? r.applied : 0, r.error), tasks_->reason());
    return true;
  }
  std::uint64_t const before = tasks_->done().records_done;
  tasks_->complete(r.lease, now, r.skipped);
  if (std::string const damage = damage_of(*tasks_); !damage.empty()) fail(damage);
  speeds_.completed(r.worker, tasks_->done().records_done - before, now);
  say(severity::debug, fmt::format("Task:{} completed, {} remaining tasks", r.lease, tasks_->remaining()));
  return true;
}

EDL_INLINE void coordinator::conclude(task_fate fate, std::string const& reason) {
  if (fate == task_fate::exhausted) return fail(reason);
  say(severity::warning, reason);
}

/// Why a job of so many damaged records ends; empty: it does not.
EDL_INLINE std::string coordinator::damage_of(task_queue const& of) const {
  std::uint64_t const skipped = of.done().records_skipped;
  if (skipped <= of.may_skip(double(options_.max_damaged))) return {};
  return fmt::format(
      "{} of {} are skipped as damaged{}, and --max_damaged={} allows {}: mend the data, or allow more",
      skipped, counted(of.plan().records(), "record"),
      of.epochs_opened() > 1 ? fmt::format(" in {} epochs", of.epochs_opened()) : "", options_.max_damaged,
      of.may_skip(double(options_.max_damaged)));
}

}  // namespace edl::master
