// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace edl::master {

/// One file of a data set.
struct shard {
  std::string name;
  std::uint64_t records = 0;
};

/// Records [begin, end) of a shard.
struct task_range {
  std::uint32_t shard = 0;  ///< index in the data set
  std::uint64_t begin = 0, end = 0;

  std::uint64_t records() const { return end - begin; }
  friend bool operator==(task_range const&, task_range const&) = default;
};

/// The order of an epoch's tasks: a pure function of the seed and the epoch if shuffled, otherwise the order
/// in the data set.
std::vector<std::uint32_t> epoch_order(std::uint32_t tasks, std::uint64_t seed, std::uint32_t epoch,
                                       bool shuffle);

/// A data set cut into tasks: each shard into runs of `records_per_task` records; a shard's last one may be
/// shorter. Needs no memory per task.
///
/// Thread safety: immutable.
class task_plan {
 public:
  struct options {
    std::uint64_t records_per_task = 512;
    std::uint64_t minibatch_size = 64;
  };

  /// Throws usage_error when a size is 0 or when tasks, or a task's minibatches, do not fit in 32 bits.
  task_plan(std::vector<shard> shards, options o);

  std::vector<shard> const& shards() const { return shards_; }
  std::uint32_t tasks() const { return std::uint32_t(ends_.empty() ? 0 : ends_.back().tasks); }
  std::uint64_t records() const { return ends_.empty() ? 0 : ends_.back().records; }

  /// The records of task `index` < tasks().
  task_range range(std::uint32_t index) const;

  /// How many minibatches task `index` < tasks() has; the last may be short.
  std::uint32_t minibatches(std::uint32_t index) const;

  /// Records, or minibatches, of the tasks [begin, end), end ≤ tasks().
  std::uint64_t records(std::uint32_t begin, std::uint32_t end) const {
    return before(end).records - before(begin).records;
  }
  std::uint64_t minibatches(std::uint32_t begin, std::uint32_t end) const {
    return before(end).minibatches - before(begin).minibatches;
  }

  /// How many records the first `applied` minibatches of task `index` hold.
  std::uint64_t records_of(std::uint32_t index, std::uint32_t applied) const;

 private:
  struct sums {
    std::uint64_t tasks = 0, records = 0, minibatches = 0;
  };

  sums before(std::uint32_t index) const;
  std::size_t shard_of(std::uint32_t index) const;
  std::uint64_t minibatches_in(std::uint64_t records) const;

  std::vector<shard> shards_;
  options options_;
  std::vector<sums> ends_;  // sums up to and including each shard
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/task_plan.ipp"
#endif
