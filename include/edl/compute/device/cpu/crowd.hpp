// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <chrono>

namespace edl::detail {

/// How often the calling thread was preempted; 0 if the system does not count it.
inline long processors_lost() {
#ifdef RUSAGE_THREAD
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
#else
  return 0;
#endif
}

/// Detects by the number of preemptions whether a thread shares its processor. A thread that spins on a
/// shared processor keeps others from running, perhaps those that it waits for. Thread safety: one thread.
class crowd {
 public:
  using clock = std::chrono::steady_clock;

  explicit crowd(clock::time_point now) : looked_(now) {}

  /// Whether the processor is shared at about this time. `lost` counts like processors_lost, and is called at
  /// most every 20 ms.
  template <class Count>
  bool here(clock::time_point now, Count&& lost) {
    using namespace std::chrono_literals;
    // A thread that shares its processor is preempted every few milliseconds. A thread that sleeps instead of
    // spinning is preempted less, so the verdict holds for a while.
    constexpr auto between = 20ms, seldom = 10ms, stays = 500ms;
    if (now - looked_ >= between) {
      long const all = lost();
      if ((all - lost_) * seldom > now - looked_) until_ = now + stays;
      lost_ = all;
      looked_ = now;
    }
    return now < until_;
  }

 private:
  clock::time_point looked_, until_{};
  long lost_ = 0;
};

}  // namespace edl::detail
