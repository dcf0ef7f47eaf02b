// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "edl/base/platform/line_reader.hpp"
#include "edl/base/platform/platform.hpp"

namespace edl::platform {

/// Processes of this machine: each instance is one run of the same command with its role in the environment.
/// A child dies with this process, whatever ends it, and inherits no descriptor but the standard three. It
/// ignores a terminal's Ctrl-C and end (SIGHUP): what is to become of it is this process's decision.
/// Thread safety: distinct and shared objects: safe. `on_end` is called from the supervising thread.
class processes {
 public:
  /// `program` is run with the arguments `command`, of which the first is its name. Throws edl::error when
  /// the system gives no descriptors. `said` outlives this object, is no other's, and reads the children's
  /// standard error: what one said at last is told with its end. It reads their standard output, too, where
  /// this process has a terminal for both. Null: they share this process's. `kills_for_memory` counts what
  /// the system has killed; null: `edl::memory_kills`. It is looked at every `look`: a kill that no child's
  /// end has followed by then was another's.
  processes(std::string program, std::vector<std::string> command, std::function<void(ending const&)> on_end,
            line_reader* said = nullptr, std::function<std::uint64_t()> kills_for_memory = nullptr,
            std::chrono::milliseconds look = std::chrono::seconds(5));
  processes(processes const&) = delete;
  processes& operator=(processes const&) = delete;

  /// Kills what still runs, and waits for it.
  ~processes();

  /// Starts `who` with this process's environment and `env` on top. A program that cannot be started is
  /// reported as an ending with code 127, or in words. While an instance of that name still runs, it waits
  /// for its end. The ending has `order`.
  void start(process_id who, environment const& env, std::uint64_t order = 0);

  /// Asks `who` to leave (SIGTERM) and kills it when it has not within `grace`. One that is not started yet
  /// never is, and has ended as one that was asked. Unknown instances are ignored.
  void stop(process_id who, std::chrono::milliseconds grace);

  /// Lets the child `pid` leave, which others have told so (SIGTERM); `asked`: only if it has been asked
  /// here, too. Its end is its own doing. Others than children are ignored.
  void let_leave(pid_t pid, bool stop_requested);

  /// Stops everything, in order of roles: workers, then servers, then, `with_master`, a master; returns when
  /// all have ended.
  void stop_all(std::chrono::milliseconds grace, bool with_master = true);

  /// The process id of a running process_id, or 0.
  pid_t pid(process_id who) const;

  /// What runs, or is about to, each once.
  std::vector<process_id> all() const;

  /// How many instances of a role run, or are about to.
  std::size_t running(role of) const;

 private:
  using clock = std::chrono::steady_clock;
  struct child {
    pid_t pid = 0;    // 0: it is being started
    int handle = -1;  // pidfd: readable when the process has ended
    bool stop_requested = false;
    std::uint64_t kills_before = 0;  // that the system had made when it was started
    std::uint64_t number = 0;        // of the pipe through which it speaks
    std::uint64_t order = 0;
    clock::time_point kill_at = clock::time_point::max();
  };
  struct start_order {
    process_id who;
    std::vector<std::string> environment;
    std::uint64_t order;
  };

  bool runs(process_id who) const;
  void supervise();
  void spawn(start_order const& order);
  void reap(process_id who, child const& c);
  std::string words_of(child const& c);
  bool killed_for_memory(child const& c);
  int wait_ms() const;

  std::string program_;
  std::vector<std::string> command_;
  std::function<void(ending const&)> on_end_;
  line_reader* said_;
  std::uint64_t started_ = 0;
  mutable std::mutex mutex_;
  std::vector<start_order> orders_;
  std::vector<start_order> dropped_;  // that were told to stop: their ends are to be told
  std::map<process_id, child> children_;
  bool closing_ = false;
  std::function<std::uint64_t()> kills_;
  std::chrono::milliseconds look_;
  std::uint64_t explained_;  // of those that the system has made
  std::uint64_t seen_;       // at the last look
  clock::time_point next_look_{};
  int wake_ = -1;
  std::thread supervisor_;
};

/// Asks the kernel to kill this process when its parent ends; false when the parent is already gone.
/// `parent` is the parent's process id, taken before the fork.
bool die_with_parent(pid_t parent) noexcept;

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/process.ipp"
#endif
