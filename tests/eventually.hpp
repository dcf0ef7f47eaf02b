// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

/// Whether `condition` comes true before the deadline; the pause between looks decides nothing.
inline bool eventually(std::function<bool()> const& condition,
                       std::chrono::milliseconds deadline = std::chrono::seconds(60)) {
  auto const until = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}
