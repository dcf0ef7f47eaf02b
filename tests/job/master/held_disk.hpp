// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

/// The disk of a test program, which forces nothing while it is held; it counts what it is asked to force.
/// `fsync` itself stands in journal_keeper.cpp.
namespace held_disk {

inline std::atomic<bool> held{false};
inline std::atomic<int> asked{0};

inline void release() {
  held = false;
  held.notify_all();
}

/// Holds the disk for as long as it lives.
struct hold {
  hold() { held = true; }
  hold(hold const&) = delete;
  ~hold() { release(); }
};

}  // namespace held_disk
