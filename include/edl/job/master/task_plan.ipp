// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"
#include "edl/job/master/task_plan.hpp"

namespace edl::master {

namespace detail {

inline std::uint64_t divided_up(std::uint64_t n, std::uint64_t by) { return n / by + (n % by != 0); }

}  // namespace detail

EDL_INLINE std::vector<std::uint32_t> epoch_order(std::uint32_t tasks, std::uint64_t seed,
                                                  std::uint32_t epoch, bool shuffle) {
  std::vector<std::uint32_t> order(tasks);
  std::iota(order.begin(), order.end(), 0u);
  if (shuffle) edl::shuffle(order, random_stream{seed, epoch}.child(0x7461736b));
  return order;
}

EDL_INLINE task_plan::task_plan(std::vector<shard> shards, options o)
    : shards_(std::move(shards)), options_(o) {
  if (o.minibatch_size == 0) throw usage_error("--minibatch_size is 0: give at least 1");
  if (o.records_per_task == 0) throw usage_error("--num_minibatches_per_task is 0: give at least 1");
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  sums sum;
  ends_.reserve(shards_.size());
  for (auto const& s : shards_) {
    std::uint64_t const tasks = detail::divided_up(s.records, o.records_per_task);
    if (tasks > most - sum.tasks)
      throw usage_error(
          fmt::format("the data set has more than {} tasks of {} records (at '{}'): "
                      "give a greater --num_minibatches_per_task",
                      most, o.records_per_task, s.name));
    if (minibatches_in(std::min(s.records, o.records_per_task)) > most)
      throw usage_error(
          fmt::format("a task of {} records has more than {} minibatches of {}: "
                      "give a smaller --num_minibatches_per_task",
                      o.records_per_task, most, o.minibatch_size));
    if (s.records > std::numeric_limits<std::uint64_t>::max() - sum.records)
      throw usage_error(fmt::format("the data set has too many records to count (at '{}')", s.name));
    sum.tasks += tasks;
    sum.records += s.records;
    if (tasks > 0)
      sum.minibatches += (tasks - 1) * minibatches_in(o.records_per_task) +
                         minibatches_in(s.records - (tasks - 1) * o.records_per_task);
    ends_.push_back(sum);
  }
}

EDL_INLINE std::uint64_t task_plan::minibatches_in(std::uint64_t records) const {
  return detail::divided_up(records, options_.minibatch_size);
}

EDL_INLINE std::size_t task_plan::shard_of(std::uint32_t index) const {
  auto const it = std::upper_bound(ends_.begin(), ends_.end(), index,
                                   [](std::uint64_t i, sums const& end) { return i < end.tasks; });
  return std::size_t(it - ends_.begin());
}

EDL_INLINE task_plan::sums task_plan::before(std::uint32_t index) const {
  if (index >= tasks()) return ends_.empty() ? sums{} : ends_.back();
  std::size_t const s = shard_of(index);
  sums sum = s == 0 ? sums{} : ends_[s - 1];
  std::uint64_t const whole = index - sum.tasks;
  sum.tasks += whole;
  sum.records += whole * options_.records_per_task;
  sum.minibatches += whole * minibatches_in(options_.records_per_task);
  return sum;
}

EDL_INLINE task_range task_plan::range(std::uint32_t index) const {
  std::size_t const s = shard_of(index);
  std::uint64_t const first = s == 0 ? 0 : ends_[s - 1].tasks;
  std::uint64_t const begin = (index - first) * options_.records_per_task;
  return {std::uint32_t(s), begin, begin + std::min(options_.records_per_task, shards_[s].records - begin)};
}

EDL_INLINE std::uint32_t task_plan::minibatches(std::uint32_t index) const {
  return std::uint32_t(minibatches_in(range(index).records()));
}

EDL_INLINE std::uint64_t task_plan::records_of(std::uint32_t index, std::uint32_t applied) const {
  std::uint64_t const records = range(index).records();
  return applied >= minibatches_in(records) ? records : applied * options_.minibatch_size;
}

}  // namespace edl::master
