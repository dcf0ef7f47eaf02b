// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace edl {

/// Threads that share one piece of work, including the caller's. A thread that waits for work spins for some
/// microseconds, so that operations can follow each other closely, and then sleeps. If other programs need
/// the processors it hardly spins. Movable. Thread safety: `run` by one thread at a time.
class thread_team {
 public:
  /// `size` includes the caller. If the system provides fewer threads than requested, the team works with
  /// those: see `size()`. If the process has its processors to itself (`own_processors`), each thread but the
  /// caller's is pinned to one.
  explicit thread_team(int size = 1);
  ~thread_team();
  thread_team(thread_team&&) noexcept;
  thread_team& operator=(thread_team&&) noexcept;

  int size() const { return size_; }

  /// Calls work(0) … work(parts − 1) in parallel, with at most `size()` parts, and waits for all. `work` must
  /// not throw, and must not run a team.
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
