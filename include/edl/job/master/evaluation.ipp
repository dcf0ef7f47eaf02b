// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/evaluation.hpp"

namespace edl::master {
namespace detail {

inline void add(std::vector<double>& to, std::vector<double> const& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] += sums[i];
}

}  // namespace detail

EDL_INLINE evaluation::evaluation(std::vector<shard> shards, options o, time_point start)
    : shards_(std::move(shards)), options_(o), start_(start) {
  if (task_plan(shards_, {o.tasks.records_per_task, o.tasks.minibatch_size}).records() == 0) shards_.clear();
  options_.tasks.num_epochs = 1;
  options_.tasks.shuffle = false;
  options_.tasks.max_minibatches = 0;
  options_.tasks.lanes = 0;
}

EDL_INLINE bool evaluation::version_reached(evaluated_version v, time_point now) {
  if (shards_.empty() || (last_version_ && v.version <= *last_version_)) return false;
  if (v.frozen) {
    if (now - start_ < options_.start_delay) return false;
    if (last_taken_ && now - *last_taken_ < options_.throttle) return false;
  }
  last_taken_ = now;
  last_version_ = v.version;
  waiting_.push_back(v);
  begin_next();
  return true;
}

EDL_INLINE void evaluation::rests(std::uint64_t version) {
  if (active_ && active_->evaluated.version == version) active_->evaluated.frozen = false;
  for (auto& v : waiting_)
    if (v.version == version) v.frozen = false;
  if (judging_ && judging_->version == version) judging_->frozen = false;
}

EDL_INLINE void evaluation::begin_next() {
  if (active_ || judging_ || waiting_.empty()) return;
  options_.tasks.first_lease = next_lease_;
  active_.emplace(evaluation_run{
      .evaluated = waiting_.front(), .queue = task_queue(shards_, options_.tasks), .totals = {}});
  waiting_.pop_front();
}

EDL_INLINE std::optional<evaluation_lease> evaluation::lease(std::uint32_t worker, std::uint64_t incarnation,
                                                             time_point now, bool others) {
  if (!active_) return std::nullopt;
  auto task = active_->queue.lease(worker, incarnation, now, 0, others);
  if (!task) return std::nullopt;
  return evaluation_lease{*task, active_->evaluated};
}

EDL_INLINE bool evaluation::holds(std::uint64_t lease, std::uint32_t worker,
                                  std::uint64_t incarnation) const {
  return active_ && active_->queue.holds(lease, worker, incarnation);
}

EDL_INLINE bool evaluation::complete(std::uint64_t lease, std::vector<double> const& sums, time_point now,
                                     std::uint64_t skipped) {
  if (!active_) return false;
  if (active_->reported && sums.size() != active_->totals.size())
    throw data_error(fmt::format(
        "{} sums of metrics where other tasks report {}: all workers must run one program, and in "
        "a lower --precision all compute on processors or all on GPUs (--device=cpu, cuda)",
        sums.size(), active_->totals.size()));
  auto const key = active_->queue.key_of(lease);
  if (!key || !active_->queue.complete(lease, now, skipped)) return false;
  active_->reported = true;
  active_->not_finite |= !finite(sums);
  active_->totals.resize(sums.size());
  active_->early.emplace(key->index, sums);
  for (auto it = active_->early.begin(); it != active_->early.end() && it->first == active_->next;
       it = active_->early.erase(it), ++active_->next)
    detail::add(active_->totals, it->second);
  return true;
}

EDL_INLINE bool evaluation::give_back(std::uint64_t lease) {
  return active_ && active_->queue.give_back(lease, 0);
}

EDL_INLINE bool evaluation::finite(std::vector<double> const& sums) {
  return std::ranges::all_of(sums, [](double x) { return std::isfinite(x); });
}

EDL_INLINE bool evaluation::doubts(std::uint64_t lease, std::vector<double> const& sums, bool others) const {
  return others && active_ && !active_->not_finite && !finite(sums) &&
         active_->queue.failures_before(lease).on.empty();
}

EDL_INLINE task_queue::failed_before evaluation::failures_before(std::uint64_t lease) const {
  return active_ ? active_->queue.failures_before(lease) : task_queue::failed_before{};
}

EDL_INLINE task_fate evaluation::fail(std::uint64_t lease, std::string const& why, bool wrong, bool others,
                                      bool refused) {
  if (!active_) return task_fate::unknown;
  task_fate const fate = active_->queue.fail(lease, 0, why, wrong, others, refused);
  if (fate != task_fate::unknown)
    reason_ =
        fmt::format("evaluation of version {}: {}", active_->evaluated.version, active_->queue.reason());
  return fate;
}

EDL_INLINE std::size_t evaluation::recover(std::uint32_t worker) {
  return active_ ? active_->queue.recover(worker) : 0;
}

EDL_INLINE bool evaluation::recover_lease(std::uint64_t lease) {
  return active_ && active_->queue.recover_lease(lease);
}

EDL_INLINE std::size_t evaluation::recover_all() { return active_ ? active_->queue.recover_all() : 0; }

EDL_INLINE std::vector<expired_lease> evaluation::expired(time_point now) const {
  return active_ ? active_->queue.expired(now) : std::vector<expired_lease>{};
}

EDL_INLINE std::optional<evaluation_result> evaluation::take_result() {
  if (!active_ || !active_->queue.finished()) return std::nullopt;
  evaluation_result result{active_->evaluated, std::move(active_->totals),
                           active_->queue.done().records_done};
  next_lease_ = active_->queue.next_lease();
  last_.emplace(std::move(active_->queue));
  active_.reset();
  if (options_.judged)
    judging_ = result.evaluated;
  else
    last_completed_ = result.evaluated.version;
  begin_next();
  return result;
}

EDL_INLINE bool evaluation::judged(std::uint64_t version) {
  if (!judging_ || judging_->version != version) return false;
  last_completed_ = version;
  judging_.reset();
  begin_next();
  return true;
}

EDL_INLINE bool evaluation::done_up_to(std::uint64_t version) const {
  auto const later = [&](evaluated_version const& v) { return v.version > version; };
  return (!active_ || later(active_->evaluated)) && (!judging_ || later(*judging_)) &&
         std::ranges::all_of(waiting_, later);
}

EDL_INLINE bool evaluation::wants_frozen(std::uint64_t version) const {
  auto const is = [&](evaluated_version const& v) { return v.frozen && v.version == version; };
  return (active_ && is(active_->evaluated)) || (judging_ && is(*judging_)) ||
         std::any_of(waiting_.begin(), waiting_.end(), is);
}

EDL_INLINE void evaluation::drop_active() {
  if (active_) next_lease_ = active_->queue.next_lease();
  active_.reset();
}

EDL_INLINE evaluated_version evaluation::give_up() {
  evaluated_version const of = active_ ? active_->evaluated : evaluated_version{};
  drop_active();
  begin_next();
  return of;
}

EDL_INLINE void evaluation::forget_unless(std::function<bool(std::uint64_t)> const& held) {
  std::optional<std::uint64_t> dropped;  // the oldest
  auto const gone = [&](evaluated_version const& v) {
    bool const is = v.frozen && !held(v.version);
    if (is) dropped = std::min(dropped.value_or(v.version), v.version);
    return is;
  };
  std::erase_if(waiting_, gone);
  if (active_ && gone(active_->evaluated)) drop_active();
  if (judging_ && gone(*judging_)) judging_.reset();
  if (options_.judged && dropped) {
    // A dropped version that decides something is evaluated when it is reported again, unless a newer one is
    // kept: results come in the order of versions.
    last_version_ = *dropped > 0 ? std::optional(*dropped - 1) : std::nullopt;
    auto const keep = [&](evaluated_version const& v) {
      last_version_ = std::max(last_version_.value_or(v.version), v.version);
    };
    std::ranges::for_each(waiting_, keep);
    if (active_) keep(active_->evaluated);
    if (judging_) keep(*judging_);
  }
  begin_next();
}

EDL_INLINE void evaluation::forget_after(std::uint64_t version) {
  if (!last_version_ || *last_version_ <= version) return;
  last_version_ = version;
  std::erase_if(waiting_, [&](auto const& v) { return v.version > version; });
  if (active_ && active_->evaluated.version > version) drop_active();
  if (judging_ && judging_->version > version) judging_.reset();
  begin_next();
}

EDL_INLINE void evaluation::roll_back(std::uint64_t version) {
  drop_active();
  judging_.reset();
  waiting_.clear();
  // `version` itself is the same model as before, so it is not evaluated twice.
  if (last_completed_ == version)
    last_version_ = version;
  else if (version > 0)
    last_version_ = version - 1;
  else
    last_version_.reset();
}

}  // namespace edl::master
