// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "edl/core/inline.hpp"
#include "edl/job/master/task_lanes.hpp"

namespace edl::master {

EDL_INLINE task_lanes::task_lanes(task_plan const& plan, options o)
    : options_(o), end_(std::uint64_t(o.epochs) * plan.tasks()), heads_(o.lanes) {
  std::uint64_t const in_epoch = plan.minibatches(0, plan.tasks());
  if (o.max_minibatches > 0 && o.max_minibatches / in_epoch < o.epochs) {
    auto const epoch = std::uint32_t(o.max_minibatches / in_epoch);
    std::uint64_t place = 0, left = o.max_minibatches % in_epoch;
    for (std::uint32_t const index : order_of(plan, epoch)) {
      if (left == 0) break;
      last_ = {epoch, index};
      of_last_ = left;
      left -= std::min<std::uint64_t>(left, plan.minibatches(index));
      ++place;
    }
    end_ = std::uint64_t(epoch) * plan.tasks() + place;
  }
  restart(plan, {});
}

EDL_INLINE std::vector<std::uint32_t> const& task_lanes::order_of(task_plan const& plan,
                                                                  std::uint32_t epoch) {
  auto const [it, added] = orders_.try_emplace(epoch);
  if (added) it->second = epoch_order(plan.tasks(), options_.seed, epoch, options_.shuffle);
  return it->second;
}

// Advances to the lane's next task that has not been applied, starting with the current one.
EDL_INLINE void task_lanes::advance(task_plan const& plan, ledger const& applied, head& h) {
  std::uint64_t const tasks = plan.tasks();
  h.next.reset();
  while (h.place < end_ && !h.next) {
    auto const epoch = std::uint32_t(h.place / tasks);
    auto const closed = applied.closed().find(epoch);
    if (closed != applied.closed().end() && closed->second.count() >= tasks) {
      std::uint64_t const left = (std::uint64_t(epoch) + 1) * tasks - h.place;
      h.place += (left + options_.lanes - 1) / options_.lanes * options_.lanes;
      continue;
    }
    task_key const key{epoch, order_of(plan, epoch)[h.place % tasks]};
    if (applied.closed(key))
      h.place += options_.lanes;
    else
      h.next = key;
  }
  std::uint64_t least = end_;
  for (head const& one : heads_) least = std::min(least, one.place);
  orders_.erase(orders_.begin(), orders_.lower_bound(std::uint32_t(least / tasks)));
}

EDL_INLINE void task_lanes::restart(task_plan const& plan, ledger const& applied) {
  for (std::size_t i = 0; i < heads_.size(); ++i) heads_[i].place = i;
  for (head& h : heads_) advance(plan, applied, h);
}

EDL_INLINE std::optional<task_key> task_lanes::next(std::uint32_t lane) const {
  return lane < heads_.size() ? heads_[lane].next : std::nullopt;
}

EDL_INLINE void task_lanes::take(task_plan const& plan, ledger const& applied, std::uint32_t lane) {
  heads_[lane].place += options_.lanes;
  advance(plan, applied, heads_[lane]);
}

EDL_INLINE std::uint64_t task_lanes::dealt_minibatches(task_key const& key) const {
  return key == last_ ? of_last_ : std::numeric_limits<std::uint64_t>::max();
}

EDL_INLINE bool task_lanes::over() const {
  return std::ranges::none_of(heads_, [](head const& h) { return h.next.has_value(); });
}

}  // namespace edl::master
