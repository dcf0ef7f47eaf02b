// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>

#include "edl/core/invariant.hpp"

namespace edl::http {

/// Pauses between failed attempts. Each is twice as long as the one before, up to a maximum, and drawn from
/// its upper half, so that clients that failed together do not all return together.
class backoff {
 public:
  backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest, std::uint32_t seed)
      : first_(first), longest_(longest), whole_(first), random_(seed) {}

  std::chrono::milliseconds next() {
    auto const whole = std::exchange(whole_, std::min(whole_ * 2, longest_));
    invariant(whole.count() >= 0 && whole <= std::max(first_, longest_),
              "a pause is no longer than the longest");
    std::uniform_int_distribution<std::int64_t> upper_half((whole.count() + 1) / 2, whole.count());
    return std::chrono::milliseconds(upper_half(random_));
  }

  /// Call after a success.
  void reset() { whole_ = first_; }

 private:
  std::chrono::milliseconds first_, longest_, whole_;
  std::minstd_rand random_;
};

}  // namespace edl::http
