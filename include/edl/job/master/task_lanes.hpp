// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "edl/core/ledger.hpp"
#include "edl/job/master/task_plan.hpp"

namespace edl::master {

/// Assigns the tasks of all epochs, in order, to lanes in turn, as if a fixed number of workers of equal
/// speed took the next task whenever they have finished one. A lane's tasks do not depend on speeds or losses
/// of workers.
///
/// Applied tasks are skipped. So a restart from a ledger in which every lane has advanced equally continues
/// as if nothing had happened.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class task_lanes {
 public:
  struct options {
    std::uint32_t lanes = 1;
    std::uint32_t epochs = 1;           ///< number of epochs
    std::uint64_t seed = 0;             ///< for `epoch_order`
    bool shuffle = true;                ///< likewise
    std::uint64_t max_minibatches = 0;  ///< assigns no more than this many; 0: no limit
  };

  /// `plan` is the same in every call.
  task_lanes(task_plan const& plan, options o);

  /// Begins anew where `applied` ends.
  void restart(task_plan const& plan, ledger const& applied);

  /// The lane's next task; empty: it has no more, or there is no such lane.
  std::optional<task_key> next(std::uint32_t lane) const;

  /// Advances to the task after it.
  void take(task_plan const& plan, ledger const& applied, std::uint32_t lane);

  /// How many minibatches of a task, from its beginning, are assigned: all, or for the last task the rest up
  /// to the limit.
  std::uint64_t dealt_minibatches(task_key const& key) const;

  /// Whether no lane has further tasks.
  bool over() const;

 private:
  struct head {
    std::uint64_t place = 0;  // position in the sequence of all epochs' tasks
    std::optional<task_key> next;
  };

  void advance(task_plan const& plan, ledger const& applied, head& h);
  std::vector<std::uint32_t> const& order_of(task_plan const& plan, std::uint32_t epoch);

  options options_;
  std::uint64_t end_;  // the end of that sequence
  std::optional<task_key> last_;
  std::uint64_t of_last_ = 0;  // assigned minibatches of the last task
  std::vector<head> heads_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> orders_;  // the orders of epochs in which lanes are
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/task_lanes.ipp"
#endif
