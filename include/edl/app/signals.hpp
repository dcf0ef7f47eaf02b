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

/// The signal by which a process that was asked from outside to shut down informs its parent. It is queued.
inline int leave_signal() { return SIGRTMIN; }

/// Whether another signal, this long after the first, aborts an orderly shutdown. Ctrl-C always does. SIGTERM
/// does after 2 s: earlier it is a duplicate of the first, because `timeout` signals a process and its group.
/// SIGHUP never does: the end of a session may send it to a process that already has SIGTERM.
bool ends_at_once(int signal, std::chrono::steady_clock::duration after);

/// Receives signals as events instead of interruptions, so that nothing is global. Create it before any
/// thread: threads started later inherit the blocked signals. Thread safety: safe.
class signals {
 public:
  enum class terminate {
    here,            ///< SIGTERM is an event, from any sender
    as_parent_says,  ///< from other senders, it informs the parent: they may mean all of its children
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

  /// The same, with the sender.
  std::optional<arrival> next(std::chrono::milliseconds timeout) const;

  /// Restores the default action of `signal`: the next one ends the process at once. In force while the
  /// calling thread runs.
  void give_back(int signal) const;

 private:
  sigset_t set_;
  terminate termination_;
  int handle_;
};

/// Logs that a signal ends the process before there is anything to save: before `what`.
void tell_early_stop(logger const& log, int signal, std::string_view what = "the first step");

/// During its lifetime a signal ends this process at once: for long work that does not poll signals, and has
/// nothing to save yet.
class early_stop {
 public:
  /// It logs that. The process exits without destructors, with the exit `code`. The references must outlive
  /// this object.
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
