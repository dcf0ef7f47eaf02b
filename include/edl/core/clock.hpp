// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace edl {

/// The clock of all timeouts. Only code that waits for processes, calls or files reads it.
using clock = std::chrono::steady_clock;

/// The time as decisions receive it: each event carries it, and decisions never read a clock, so that a test
/// can set the time. Messages and files store a time as seconds since 1970 (`core/wall_time.hpp`).
using time_point = clock::time_point;
using duration = clock::duration;

}  // namespace edl
