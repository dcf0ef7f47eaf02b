// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace edl {

/// Time as decisions know it: handed in with each event, never read from a clock, so that a test says what
/// time it is. What others are told of a moment are seconds since 1970 (`cluster/kubernetes/clock_text.hpp`).
using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

}  // namespace edl
