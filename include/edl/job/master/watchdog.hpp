// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// Detects a lack of progress, and decides when to log it. It has no clock: callers pass the time. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class watchdog {
 public:
  explicit watchdog(duration timeout = std::chrono::seconds(60)) : timeout_(timeout) {}

  /// `mark` changes with every step. True: there was no step for the timeout, and it is time to log that:
  /// first after the timeout, then after intervals that double, up to ten times the timeout.
  bool look(std::uint64_t mark, time_point now);

  /// Whether there was no step for the timeout.
  bool stuck(time_point now) const { return since_ && now - *since_ >= timeout_; }

  /// The time since the last step.
  duration still(time_point now) const { return since_ ? now - *since_ : duration{}; }

 private:
  duration timeout_, pause_{};
  std::optional<std::uint64_t> mark_;
  std::optional<time_point> since_, announced_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/watchdog.ipp"
#endif
