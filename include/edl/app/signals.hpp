// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <optional>

namespace edl::app {

/// Takes signals as events instead of interruptions, so that nothing has to be global. Make it before any
/// thread: threads started later leave the signals to it. Thread safety: safe.
class signals {
 public:
  /// Throws edl::error when the system gives no descriptor.
  explicit signals(std::initializer_list<int> which);
  signals(signals const&) = delete;
  signals& operator=(signals const&) = delete;
  ~signals();

  /// The next signal, waiting at most `patience` for it.
  std::optional<int> wait(std::chrono::milliseconds patience) const;

  /// From here on the signals do what they do to a program that knows nothing of them: the next one ends the
  /// process at once. Holds as long as the calling thread runs.
  void give_back() const;

 private:
  sigset_t set_;
  int handle_;
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/signals.ipp"
#endif
