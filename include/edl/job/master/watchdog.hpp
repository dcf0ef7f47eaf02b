// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "edl/job/master/time.hpp"

namespace edl::master {

/// Finds that something has not moved for a while, and how often that is worth a line. It has no clock: the
/// time goes in. Thread safety: distinct objects: safe. Shared objects: unsafe.
class watchdog {
 public:
  explicit watchdog(duration timeout = std::chrono::seconds(60)) : timeout_(timeout) {}

  /// `mark` is another value whenever there was a step. True: there was none for the timeout, and this is
  /// the time to say so. That is first after the timeout and then after twice as long each time, at most ten
  /// times it.
  bool look(std::uint64_t mark, time_point now);

  /// Whether there was no step for the timeout.
  bool stuck(time_point now) const { return since_ && now - *since_ >= timeout_; }

  /// How long there has been no step.
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
