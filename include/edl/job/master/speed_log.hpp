// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// How fast a job trains with how many workers, by the records of the tasks that they complete.
///
/// A measurement is a time in which the workers that contribute are the same, and in which all of them train.
/// Their number is the size. Its first completed task begins it and is not counted; it ends whenever each of
/// them has completed another.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class speed_log {
 public:
  struct options {
    duration least = std::chrono::seconds(5);  ///< a measurement is shown from then on
    duration most = std::chrono::seconds(60);  ///< then the next begins, so that changes of speed show
    std::uint64_t tasks = 4;                   ///< that are counted, at least
    std::size_t sizes = 32;                    ///< that are remembered: those measured last
  };

  explicit speed_log(options o) : options_(o) {}
  speed_log() : speed_log(options{}) {}

  /// A worker has completed a training task.
  void completed(std::uint32_t worker, std::uint64_t records, time_point now);

  /// A worker contributes no more.
  void gone(std::uint32_t worker);

  /// Not all of them train: they evaluate, or are held up. What is measured is dropped.
  void interrupted();

  /// Records a second, by size.
  std::map<std::uint32_t, double> const& all() const { return speeds_; }

 private:
  void remember(std::uint32_t size, double speed);

  options options_;
  std::set<std::uint32_t> workers_;  // that contribute
  std::set<std::uint32_t> seen_;     // of them, since the last look at the speed
  std::optional<time_point> since_;
  std::uint64_t records_ = 0, tasks_ = 0, turn_ = 0;
  std::map<std::uint32_t, double> speeds_;
  std::map<std::uint32_t, std::uint64_t> turns_;  // when a size was measured last
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/speed_log.ipp"
#endif
