// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <chrono>

namespace edl::detail {

/// How often the calling thread has lost its processor to others; 0 where the system does not count it.
inline long processors_lost() {
#ifdef RUSAGE_THREAD
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
#else
  return 0;
#endif
}

/// Whether a thread has to share its processor, by how often it loses it. Who waits there without sleeping
/// keeps others from it, maybe those that are waited for. Thread safety: of one thread.
class crowd {
 public:
  using clock = std::chrono::steady_clock;

  explicit crowd(clock::time_point now) : looked_(now) {}

  /// At about this time. `lost` counts like processors_lost, and is not asked more than every 20 ms.
  template <class Count>
  bool here(clock::time_point now, Count&& lost) {
    using namespace std::chrono_literals;
    // A thread beside others loses its processor every few milliseconds. One that sleeps instead of waiting
    // loses it less, and so it stays with that for a while.
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
