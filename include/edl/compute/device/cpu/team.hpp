// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace edl {

/// Threads that do one piece of work together, the caller among them. Waiting for work they first spin for
/// some microseconds, so that operations may follow each other closely, then sleep. Where others want their
/// processors they hardly spin. Movable. Thread safety: `run` by one thread at a time.
class thread_team {
 public:
  /// `size` counts the caller. With fewer threads than asked for, where the system gives no more, it still
  /// works: `size()` tells. Where the process has its processors to itself (`own_processors`), each thread
  /// but the caller's stays on one.
  explicit thread_team(int size = 1);
  ~thread_team();
  thread_team(thread_team&&) noexcept;
  thread_team& operator=(thread_team&&) noexcept;

  int size() const { return size_; }

  /// Calls work(0) … work(parts − 1), at most `size()` of them, side by side, and waits for all. `work`
  /// throws nothing and runs no team.
  template <class Work>
  void run(int parts, Work&& work) {
    if (parts <= 1)
      work(0);
    else
      start(
          parts, [](void* w, int part) { (*static_cast<std::remove_reference_t<Work>*>(w))(part); },
          const_cast<void*>(static_cast<void const*>(std::addressof(work))));
  }

 private:
  struct state;
  void start(int parts, void (*work)(void*, int), void* context);

  int size_ = 1;
  std::unique_ptr<state> state_;
};

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/team.ipp"
#endif
