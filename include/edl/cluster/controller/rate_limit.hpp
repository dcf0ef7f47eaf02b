// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "edl/core/clock.hpp"

namespace edl::controller {

/// So many a second, and so many at once after a rest (a token bucket). Time is given in.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class rate_limit {
 public:
  rate_limit(double per_s, double burst) : each_(1 / per_s), burst_(burst) {}

  /// How long the caller has to wait for its turn, which is its own from now on.
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
