// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <thread>

#include "edl/core/log.hpp"

namespace edl::app {

/// By which a process that was told to leave from outside asks its parent. What is asked so is queued.
inline int leave_signal() { return SIGRTMIN; }

/// Whether one more signal, so long after the first, ends at once what is being stopped in order. Ctrl-C
/// always does. SIGTERM does after 2 s: before, it is the first one once more, which `timeout` sends to a
/// process and to its group. SIGHUP never does: a session that ends may send it to whoever has SIGTERM.
bool ends_at_once(int signal, std::chrono::steady_clock::duration after);

/// Takes signals as events instead of interruptions, so that nothing has to be global. Make it before any
/// thread: threads started later leave the signals to it. Thread safety: safe.
class signals {
 public:
  enum class terminate {
    here,            ///< SIGTERM is an event, whoever sends it
    as_parent_says,  ///< from others than the parent, it asks the parent: all of its children may be meant
  };

  /// SIGHUP that this process was started to ignore (nohup) stays ignored. Throws edl::error when the system
  /// gives no descriptor.
  explicit signals(std::initializer_list<int> which, terminate how = terminate::here);
  signals(signals const&) = delete;
  signals& operator=(signals const&) = delete;
  ~signals();

  /// The next signal, waiting at most `timeout` for it.
  std::optional<int> wait(std::chrono::milliseconds timeout) const;

  struct arrival {
    int signal;
    pid_t from;
  };

  /// The same, with who has sent it.
  std::optional<arrival> next(std::chrono::milliseconds timeout) const;

  /// From here on `signal` does what it does to a program that knows nothing of it: the next one ends the
  /// process at once. Holds as long as the calling thread runs.
  void give_back(int signal) const;

 private:
  sigset_t set_;
  terminate termination_;
  int handle_;
};

/// Says that a signal ends the process before there is anything to keep: before `what`.
void tell_early_stop(logger const& log, int signal, std::string_view what = "the first step");

/// While it lives, a signal ends this process within a moment: what its scope does asks for none, for as long
/// as it takes, and has nothing yet that is worth keeping.
class early_stop {
 public:
  /// A line of the log says so. The process ends without destructors, with the exit `code`. The references
  /// outlive this object.
  early_stop(signals const& stop, logger const& log, std::function<int(int signal)> code,
             std::string_view before = "the first step");
  early_stop(early_stop const&) = delete;

 private:
  std::jthread watch_;
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/signals.ipp"
#endif
