// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// How fast a job trains with how many workers, measured by the records of completed tasks.
///
/// A measurement covers a period in which the contributing workers stay the same and all of them train. Their
/// number is its size. Each worker's first completed task starts its part and does not count; it ends
/// whenever each worker has completed another one. The speed is the sum of those of the workers, each from
/// its first to its last task: so it does not depend on how their tasks interleave.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class speed_log {
 public:
  struct options {
    duration least = std::chrono::seconds(5);  ///< a measurement is reported after this time
    duration most = std::chrono::seconds(60);  ///< then the next one begins, so that changes of speed show
    std::uint64_t tasks = 4;                   ///< least number of counted tasks
    std::size_t sizes = 32;                    ///< how many sizes are kept: those measured last
  };

  explicit speed_log(options o) : options_(o) {}
  speed_log() : speed_log(options{}) {}

  /// A worker has completed a training task.
  void completed(std::uint32_t worker, std::uint64_t records, time_point now);

  /// A worker no longer contributes.
  void gone(std::uint32_t worker);

  /// Not all workers train: they evaluate, or wait. Discards the current measurement.
  void interrupted();

  /// Records per second, by size.
  std::map<std::uint32_t, double> const& all() const { return speeds_; }

 private:
  void remember(std::uint32_t size, double speed);

  options options_;
  std::set<std::uint32_t> workers_;  // those that contribute
  std::set<std::uint32_t> seen_;     // those that completed a task since the last evaluation of the speed
  struct part {
    time_point first, last;
    std::uint64_t records = 0;
  };
  std::map<std::uint32_t, part> parts_;  // by worker
  std::uint64_t tasks_ = 0, turn_ = 0;
  std::map<std::uint32_t, double> speeds_;
  std::map<std::uint32_t, std::uint64_t> turns_;  // when each size was measured last
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/speed_log.ipp"
#endif
