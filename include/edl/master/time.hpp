// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace edl::master {

/// Time as the master's decisions know it: handed in with each event, never read from a clock.
using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

}  // namespace edl::master
