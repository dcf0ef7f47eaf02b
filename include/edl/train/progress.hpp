// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "edl/core/log.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::train {

/// How far a job is: on a terminal one line that is redrawn, otherwise a log line now and then.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class progress_view {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `terminal`: whether the line is redrawn in place on standard error.
  progress_view(logger log, bool terminal) : log_(std::move(log)), terminal_(terminal) {}
  ~progress_view() { clear(); }

  /// Call it as often as you like; it shows something a few times a second on a terminal, else every ten
  /// seconds. The line that it has shown; empty: none.
  std::string update(master::job_progress const& p, time_point now);

  /// Takes the redrawn line away, before something else is written.
  void clear();

 private:
  logger log_;
  bool terminal_, shown_ = false;
  time_point last_{}, since_{};
  std::uint64_t records_ = 0;  // at `since_`
  double rate_ = 0;            // records a second, smoothed
};

/// "tasks 24/236, records 12288/120000, 1873 records/s, loss 0.113, version 192, 0:57 left"
std::string describe(master::job_progress const& p, double records_per_second);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/train/progress.ipp"
#endif
