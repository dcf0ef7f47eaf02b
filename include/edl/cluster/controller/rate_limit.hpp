// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "edl/core/clock.hpp"

namespace edl::controller {

/// A token bucket: `per_s` requests per second, in bursts after idle time. The caller passes the time. Thread
/// safety: distinct objects: safe. Shared objects: unsafe.
class rate_limit {
 public:
  rate_limit(double per_s, double burst) : each_(1 / per_s), burst_(burst) {}

  /// Reserves the next token and returns how long the caller has to wait before it may use it.
  duration reserve(time_point now) {
    auto const each = std::chrono::duration_cast<duration>(each_);
    next_ = std::max(next_, now - std::chrono::duration_cast<duration>(each_ * (burst_ - 1)));
    auto const turn = next_;
    next_ += each;
    return std::max(turn - now, duration::zero());
  }

 private:
  std::chrono::duration<double> each_;
  double burst_;
  time_point next_{};
};

}  // namespace edl::controller
