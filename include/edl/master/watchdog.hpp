// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "edl/master/time.hpp"

namespace edl::master {

/// Finds that something has not moved for a while, and how often that is worth a line. It has no clock: the
/// time goes in. Thread safety: distinct objects: safe. Shared objects: unsafe.
class watchdog {
 public:
  explicit watchdog(duration patience = std::chrono::seconds(60)) : patience_(patience) {}

  /// `mark` is another value whenever there was a step. True: there was none for the patience, and this is
  /// the time to say so. That is first after the patience and then after twice as long each time, at most ten
  /// times it.
  bool look(std::uint64_t mark, time_point now);

  /// Whether there was no step for the patience.
  bool stuck(time_point now) const { return since_ && now - *since_ >= patience_; }

  /// How long there has been no step.
  duration still(time_point now) const { return since_ ? now - *since_ : duration{}; }

 private:
  duration patience_, pause_{};
  std::optional<std::uint64_t> mark_;
  std::optional<time_point> since_, told_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/master/watchdog.ipp"
#endif
