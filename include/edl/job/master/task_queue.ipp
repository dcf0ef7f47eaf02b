// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/master/task_queue.hpp"

namespace edl::master {
namespace detail {

// For a loss that is not finite on any worker.
inline std::string advice(bool unwatched) {
  return unwatched ? "; a lower learning rate may help, unless the memory of a server is faulty: "
                     "--ps_replicas=2 or --verify_gradients would show that"
                   : "; a lower learning rate may help";
}

}  // namespace detail

EDL_INLINE task_queue::task_queue(std::vector<shard> shards, options o)
    : plan_(std::move(shards), {o.records_per_task, o.minibatch_size}),
      options_(o),
      next_lease_(o.first_lease) {
  if (plan_.tasks() == 0) throw usage_error("the data set holds no record");
  if (o.num_epochs > std::int64_t{std::numeric_limits<std::uint32_t>::max()})
    throw usage_error(
        fmt::format("--num_epochs={} is too many: give 0 for training without limit", o.num_epochs));
  if (o.lanes > 0)
    lanes_.emplace(plan_, task_lanes::options{.lanes = o.lanes,
                                              .epochs = most_epochs(),
                                              .seed = o.seed,
                                              .shuffle = o.shuffle,
                                              .max_minibatches = o.max_minibatches});
}

EDL_INLINE std::uint32_t task_queue::most_epochs() const {
  return options_.num_epochs > 0 ? std::uint32_t(options_.num_epochs)
                                 : std::numeric_limits<std::uint32_t>::max();
}

EDL_INLINE std::uint64_t task_queue::closed_in(std::uint32_t epoch) const {
  auto const closed = restored_.closed().find(epoch);
  return closed == restored_.closed().end() ? 0 : closed->second.count();
}

EDL_INLINE bool task_queue::open_epoch() {
  while (next_epoch_ < most_epochs()) {
    std::uint32_t const epoch = next_epoch_++;
    std::uint64_t const done = closed_in(epoch);
    if (done >= plan_.tasks()) continue;
    order_ = epoch_order(plan_.tasks(), options_.seed, epoch, options_.shuffle);
    cursor_ = 0;
    unseen_ = plan_.tasks() - done;
    return true;
  }
  return false;
}

EDL_INLINE bool task_queue::may_begin() const {
  if (stopped_) return false;
  if (lanes_) return !lanes_->over();
  return room() > 0;
}

// The number of minibatches that may still be begun.
EDL_INLINE std::uint64_t task_queue::room() const {
  if (options_.max_minibatches == 0) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t const taken = done_.minibatches_done + begun_ + in_parts_;
  return options_.max_minibatches - std::min(options_.max_minibatches, taken);
}

// Begins the next task that has never been leased.
EDL_INLINE std::optional<task_queue::waiting> task_queue::begin_next(std::uint32_t lane) {
  if (!may_begin()) return std::nullopt;
  task_key key;
  std::uint64_t room = this->room();
  if (lanes_) {
    auto const next = lanes_->next(lane);
    if (!next) return std::nullopt;
    key = *next;
    room = lanes_->dealt_minibatches(key);
    lanes_->take(plan_, restored_, lane);
    while (next_epoch_ <= key.epoch) unseen_ += plan_.tasks() - closed_in(next_epoch_++);
  } else {
    if (unseen_ == 0 && !open_epoch()) return std::nullopt;
    key.epoch = next_epoch_ - 1;
    do key.index = order_[cursor_++];
    while (restored_.closed(key));
  }
  invariant(unseen_ > 0, "a worker that begins a task has not seen all of its epoch");
  --unseen_;
  std::uint32_t const at = restored_.position(key);
  if (parts_.erase(key) > 0) in_parts_ -= at;
  std::uint64_t const all = plan_.minibatches(key.index);
  // With lanes the limit counts from the task's beginning, so that a restored part does not change it.
  std::uint64_t const until = lanes_ ? std::max<std::uint64_t>(at, room) : at + std::min(all - at, room);
  waiting const begun{key, at, at > 0, lane, std::uint32_t(std::min(all, until))};
  invariant(begun.applied <= begun.until, "no more minibatches of a task are applied than it has");
  begun_ += begun.until;
  return begun;
}

EDL_INLINE bool task_queue::failed_here_alone(task_key const& task, failed_on const& here) const {
  auto const it = failures_.find(task);
  return it != failures_.end() && it->second.on.size() == 1 && it->second.on.front() == here;
}

EDL_INLINE std::optional<task_queue::waiting> task_queue::next(failed_on const& by, std::uint32_t lane,
                                                               bool others) {
  auto const pop = [&](std::deque<waiting>& from) -> std::optional<waiting> {
    // A lane has a single worker, for which others wait: it retries its own failed tasks.
    auto const it = std::ranges::find_if(from, [&](waiting const& w) {
      return lanes_ ? w.lane == lane : !others || !failed_here_alone(w.key, by);
    });
    if (it == from.end()) return std::nullopt;
    waiting const w = *it;
    from.erase(it);
    ++history_.repeated;
    return w;
  };
  if (auto const again = pop(front_)) return again;
  if (others && !lanes_ && std::ranges::any_of(failures_, [&](auto const& f) {
        return f.second.in_doubt && failed_here_alone(f.first, by);
      }))
    return std::nullopt;
  // Failed tasks wait until the open epochs have no other tasks left.
  auto const in_lane = lanes_ ? lanes_->next(lane) : std::nullopt;
  if (bool const more = lanes_ ? in_lane && in_lane->epoch < next_epoch_ : unseen_ > 0; !more || !may_begin())
    if (auto const failed = pop(back_)) return failed;
  return begin_next(lane);
}

EDL_INLINE bool task_queue::recovered_waiting(std::uint32_t lane) const {
  return std::ranges::any_of(front_, [&](waiting const& w) { return !lanes_ || w.lane == lane; });
}

EDL_INLINE std::optional<task_lease> task_queue::lease(std::uint32_t worker, std::uint64_t incarnation,
                                                       time_point now, std::uint32_t lane, bool others) {
  auto const task = next({worker, incarnation}, lane, others);
  if (!task) return std::nullopt;
  std::uint64_t const id = next_lease_++;
  leases_.emplace_hint(leases_.end(), id, held{*task, worker, incarnation, now});
  holders_[worker].leases.push_back(id);
  ++history_.leased;
  return task_lease{id, task->key, plan_.range(task->key.index), task->applied, task->resumed, task->until};
}

EDL_INLINE bool task_queue::holds(std::uint64_t lease, std::uint32_t worker,
                                  std::uint64_t incarnation) const {
  auto const it = leases_.find(lease);
  return it != leases_.end() && it->second.worker == worker && it->second.incarnation == incarnation;
}

EDL_INLINE task_queue::waiting task_queue::take(lease_map::iterator it) {
  waiting const task = it->second.task;
  bool const held_once = std::erase(holders_[it->second.worker].leases, it->first) == 1;
  invariant(held_once, "one worker holds a lease");
  leases_.erase(it);
  return task;
}

EDL_INLINE void task_queue::put_back(lease_map::iterator it, std::uint32_t applied) {
  waiting task = take(it);
  task.applied = std::min(std::max(task.applied, applied), task.until);
  task.resumed = true;
  if (halted_) return leave(task);
  front_.push_front(task);
}

// Leaves a task as it is: no worker continues it.
EDL_INLINE void task_queue::leave(waiting const& task) {
  invariant(begun_ >= task.until, "a task that is left has begun");
  begun_ -= task.until;
  ++unseen_;
  if (task.applied == 0) return;
  parts_[task.key] = task.applied;
  in_parts_ += task.applied;
}

EDL_INLINE void task_queue::halt() {
  stopped_ = halted_ = true;
  for (auto* const row : {&front_, &back_})
    for (waiting const& task : std::exchange(*row, {})) leave(task);
}

EDL_INLINE std::optional<task_key> task_queue::key_of(std::uint64_t lease) const {
  auto const it = leases_.find(lease);
  return it == leases_.end() ? std::nullopt : std::optional(it->second.task.key);
}

EDL_INLINE void task_queue::count(std::uint32_t epoch, task_counters const& more) {
  for (task_counters* c : {&done_, &by_epoch_[epoch]}) {
    c->tasks_done += more.tasks_done;
    c->records_done += more.records_done;
    c->records_skipped += more.records_skipped;
    c->minibatches_done += more.minibatches_done;
  }
}

EDL_INLINE bool task_queue::complete(std::uint64_t lease, time_point now, std::uint64_t skipped) {
  auto const it = leases_.find(lease);
  if (it == leases_.end()) return false;
  holder& h = holders_[it->second.worker];
  longest_ = std::max(longest_, now - std::max(it->second.since, h.last_done));
  h.last_done = now;
  auto const [key, applied, resumed, lane, until] = take(it);
  failures_.erase(key);
  invariant(begun_ >= until, "a task that is done has begun");
  begun_ -= until;
  std::uint64_t const records = plan_.records_of(key.index, until);
  skipped = std::min(skipped, records);
  // A task cut short by the job's end is not complete: a longer job does the rest.
  count(key.epoch, {.tasks_done = std::uint64_t(until == plan_.minibatches(key.index)),
                    .records_done = records - skipped,
                    .records_skipped = skipped,
                    .minibatches_done = until});
  return true;
}

EDL_INLINE bool task_queue::give_back(std::uint64_t lease, std::uint32_t applied) {
  auto const it = leases_.find(lease);
  if (it == leases_.end()) return false;
  put_back(it, applied);
  ++history_.returned;
  return true;
}

EDL_INLINE task_queue::failed_before task_queue::failures_before(std::uint64_t lease) const {
  auto const l = leases_.find(lease);
  auto const f = l == leases_.end() ? failures_.end() : failures_.find(l->second.task.key);
  if (f == failures_.end() || f->second.times == 0) return {};
  return {f->second.on, f->second.wrong, f->second.untold ? f->second.why : std::string()};
}

EDL_INLINE task_fate task_queue::fail(std::uint64_t lease, std::uint32_t applied, std::string const& why,
                                      bool wrong, bool others, bool refused) {
  auto const it = leases_.find(lease);
  if (it == leases_.end()) return task_fate::unknown;
  std::uint32_t const worker = it->second.worker;
  failed_on const here{worker, it->second.incarnation};
  waiting task = take(it);
  task.applied = std::min(std::max(task.applied, applied), task.until);
  task.resumed = true;
  ++history_.failed;
  failures& before = failures_[task.key];
  ++before.times;
  if (std::ranges::find(before.on, here) == before.on.end()) before.on.push_back(here);
  // A task that failed on one worker only may be that machine's fault: another worker has to try it.
  bool const elsewhere = others && before.on.size() == 1;
  before.wrong = wrong;
  before.in_doubt = (wrong || refused) && elsewhere;
  task_range const range = plan_.range(task.key.index);
  bool const spent = refused || before.times >= options_.max_retries, again = !spent || elsewhere;
  std::string const name = fmt::format("task {} of epoch {}", task.key.index, task.key.epoch),
                    whole = fmt::format("{} ('{}', records [{}, {}))", name, plan_.shards()[range.shard].name,
                                        range.begin, range.end);
  // A damaged record of the validation data fails many tasks: log the whole reason only once.
  bool const reported = std::ranges::any_of(failures_, [&](auto const& of) { return of.second.why == why; });
  // A record that every worker refuses is logged once, when that is certain.
  if (again && refused)
    reason_ = fmt::format("{} failed on worker {} for one of its records, and another worker tries it", name,
                          worker);
  else if (again && reported)
    reason_ = fmt::format("{} failed {}on worker {}, try {} of {}: for the same reason", name,
                          before.times > 1 ? "again " : "", worker, before.times, options_.max_retries);
  else if (again)
    reason_ = fmt::format("{} failed on worker {}, try {} of {}: {}", whole, worker, before.times,
                          options_.max_retries, why);
  else
    reason_ =
        fmt::format("{} failed {}on worker {}: {}{}", whole,
                    before.times > 1 ? fmt::format("{} times, at last ", before.times) : "", worker, why,
                    wrong                                ? detail::advice(options_.unwatched)
                    : before.untold && before.why != why ? "; before that: " + before.why
                                                         : std::string());
  before.why = why;
  before.untold = again && refused;
  if (halted_)
    leave(task);
  else
    (before.in_doubt ? front_ : back_).push_back(task);
  if (lanes_ && spent && elsewhere) return task_fate::misplaced;
  return again ? task_fate::requeued : task_fate::exhausted;
}

EDL_INLINE std::uint64_t task_queue::may_skip(double share) const {
  // A share given as 0.01 may be stored as slightly less: 1 % of 1000 records must be 10, not 9.
  double const records = share * double(plan_.records()) * (1 + 1e-6);
  return std::max<std::uint64_t>(1, std::uint64_t(records)) * std::max<std::uint64_t>(1, epochs_opened());
}

EDL_INLINE std::size_t task_queue::recover(std::uint32_t worker) {
  auto const h = holders_.find(worker);
  if (h == holders_.end()) return 0;
  std::vector<std::uint64_t> const leases = h->second.leases;
  for (auto id = leases.rbegin(); id != leases.rend(); ++id) put_back(leases_.find(*id), 0);
  holders_.erase(worker);
  history_.recovered += leases.size();
  return leases.size();
}

EDL_INLINE bool task_queue::recover_lease(std::uint64_t lease) {
  auto const it = leases_.find(lease);
  if (it == leases_.end()) return false;
  put_back(it, 0);
  ++history_.expired;
  return true;
}

EDL_INLINE std::size_t task_queue::recover_all() {
  std::size_t const n = leases_.size();
  while (!leases_.empty()) put_back(std::prev(leases_.end()), 0);
  holders_.clear();
  history_.recovered += n;
  return n;
}

EDL_INLINE void task_queue::progressed(std::uint32_t worker, time_point now) {
  if (auto const h = holders_.find(worker); h != holders_.end()) h->second.last_progress = now;
}

EDL_INLINE std::vector<expired_lease> task_queue::expired(time_point now) const {
  duration const limit = std::max(options_.min_timeout, 3 * longest_);
  std::vector<expired_lease> out;
  for (auto const& [id, lease] : leases_) {
    if (now - lease.since <= limit) break;  // all later ones are younger
    holder const& h = holders_.at(lease.worker);
    time_point since = std::max(lease.since, h.last_done);
    if (longest_ == duration{}) since = std::max(since, h.last_progress);
    if (now - since > limit) out.push_back({id, lease.worker});
  }
  return out;
}

EDL_INLINE std::map<std::uint32_t, task_counters> task_queue::account(ledger const& applied) const {
  auto const stranger = [](std::string const& what) {
    return error(what +
                 ": the checkpoint was written with other data, or another --minibatch_size or "
                 "--num_minibatches_per_task; give those, or an empty --checkpoint_dir");
  };
  for (auto const& [key, mark] : applied.open())
    if (key.index >= plan_.tasks() || mark >= plan_.minibatches(key.index))
      throw stranger(
          fmt::format("the ledger has {} minibatches of task {} of epoch {}", mark, key.index, key.epoch));
  std::map<std::uint32_t, task_counters> out;
  for (auto const& [epoch, tasks] : applied.closed()) {
    if (options_.num_epochs > 0 && epoch >= options_.num_epochs) continue;  // left by a longer job
    for (auto const& [begin, end] : tasks.runs()) {
      if (end > plan_.tasks())
        throw stranger(
            fmt::format("the ledger has task {} of epoch {}, of {} tasks", end - 1, epoch, plan_.tasks()));
      task_counters& c = out[epoch];
      c.tasks_done += end - begin;
      c.records_done += plan_.records(begin, end);
      c.minibatches_done += plan_.minibatches(begin, end);
    }
  }
  for (auto const& [task, records] : applied.skipped())
    if (auto const it = out.find(task.epoch); it != out.end() && applied.closed(task)) {
      it->second.records_done -= std::min<std::uint64_t>(records, plan_.range(task.index).records());
      it->second.records_skipped += records;
    }
  return out;
}

EDL_INLINE void task_queue::restore(ledger const& applied) {
  auto counts = account(applied);
  std::uint64_t const before = sum_of(done_by_epoch()).records_done;
  restored_ = applied;
  stopped_ = halted_ = false;
  front_.clear();
  back_.clear();
  order_.clear();
  cursor_ = 0;
  unseen_ = 0;
  next_epoch_ = 0;
  leases_.clear();
  holders_.clear();
  // Remember the processes on which a task failed. Otherwise a lane's task would move between them for ever.
  for (auto& [task, f] : failures_) f.times = 0, f.in_doubt = false;
  begun_ = 0;
  parts_ = restored_.open();
  in_parts_ = 0;
  for (auto const& [key, mark] : parts_) in_parts_ += mark;
  done_ = {};
  by_epoch_.clear();
  for (auto const& [epoch, c] : counts) count(epoch, c);
  if (lanes_) lanes_->restart(plan_, restored_);
  auto const now = done_by_epoch();
  history_.records_taken_back += before - std::min(before, sum_of(now).records_done);
  restored_account_.emplace();
  for (auto const& [epoch, marked] : now) {
    auto const counted = restored_.tallies().find(epoch);
    if (counted == restored_.tallies().end()) return restored_account_.reset();
    std::uint64_t const records = counted->second.records;
    restored_account_->lost += marked.records_done - std::min(marked.records_done, records);
    restored_account_->repeated += records - std::min(marked.records_done, records);
  }
}

EDL_INLINE std::optional<task_queue::lease_age> task_queue::oldest() const {
  if (leases_.empty()) return std::nullopt;
  held const& first = leases_.begin()->second;
  return lease_age{first.worker, first.since};
}

EDL_INLINE task_counters sum_of(std::map<std::uint32_t, task_counters> const& by_epoch) {
  task_counters all;
  for (auto const& [epoch, n] : by_epoch) {
    all.tasks_done += n.tasks_done;
    all.records_done += n.records_done, all.records_skipped += n.records_skipped;
    all.minibatches_done += n.minibatches_done;
  }
  return all;
}

EDL_INLINE std::map<std::uint32_t, task_counters> task_queue::done_by_epoch() const {
  auto all = by_epoch_;
  for (auto const& [key, mark] : parts_) {
    if (options_.num_epochs > 0 && key.epoch >= options_.num_epochs) continue;  // left by a longer job
    auto const entry = restored_.skipped().find(key);
    std::uint64_t const records = plan_.records_of(key.index, mark);
    std::uint64_t const skipped =
        entry == restored_.skipped().end() ? 0 : std::min<std::uint64_t>(entry->second, records);
    all[key.epoch].records_done += records - skipped;
    all[key.epoch].records_skipped += skipped;
    all[key.epoch].minibatches_done += mark;
  }
  return all;
}

EDL_INLINE bool task_queue::finished() const {
  if (!leases_.empty() || !front_.empty() || !back_.empty()) return false;
  auto const total = total_tasks();
  return !may_begin() || (total && done_.tasks_done == *total);
}

EDL_INLINE std::optional<std::uint64_t> task_queue::total_tasks() const {
  if (options_.num_epochs <= 0) return std::nullopt;
  return std::uint64_t(options_.num_epochs) * plan_.tasks();
}

EDL_INLINE std::optional<std::uint64_t> task_queue::total_records() const {
  if (options_.num_epochs <= 0) return std::nullopt;
  return std::uint64_t(options_.num_epochs) * plan_.records();
}

}  // namespace edl::master
