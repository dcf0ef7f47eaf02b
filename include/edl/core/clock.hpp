// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace edl {

/// The clock of all timeouts. Only what waits for others reads it: processes, calls, files.
using clock = std::chrono::steady_clock;

/// Time as decisions know it: handed in with each event, never read from a clock, so that a test says what
/// time it is. Messages and files give a moment as seconds since 1970 (`core/wall_time.hpp`).
using time_point = clock::time_point;
using duration = clock::duration;

}  // namespace edl
