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
/// A child dies with this process, for any cause, and inherits only the three standard descriptors. It
/// ignores a terminal's Ctrl-C and hang-up (SIGHUP): this process decides when it ends. Thread safety:
/// distinct and shared objects: safe. `on_end` is called from the supervising thread.
class processes {
 public:
  /// Runs `program` with the arguments `command`; the first is its name. Throws edl::error if the system has
  /// no descriptors left. `said` must outlive this object, must not be shared, and reads the children's
  /// standard error: an ending includes the last line. It also reads their standard output if this process
  /// has a terminal for both. Null: children share this process's. `kills_for_memory` counts the system's
  /// out-of-memory kills; null: `edl::memory_kills`. It is read every `look`: a kill without a child's end by
  /// then hit another process.
  processes(std::string program, std::vector<std::string> command, std::function<void(ending const&)> on_end,
            line_reader* said = nullptr, std::function<std::uint64_t()> kills_for_memory = nullptr,
            std::chrono::milliseconds look = std::chrono::seconds(5));
  processes(processes const&) = delete;
  processes& operator=(processes const&) = delete;

  /// Kills running children, and waits for them.
  ~processes();

  /// Starts `who` with this process's environment and `env` on top. If the program cannot be started, it
  /// reports an ending with code 127, or with a message. While an instance of that name still runs, it waits
  /// for its end. The ending contains `order`.
  void start(process_id who, environment const& env, std::uint64_t order = 0);

  /// Sends `who` SIGTERM, and kills it after `grace`. One that is not started yet is not started, and ends as
  /// if it had been stopped. Ignores unknown instances.
  void stop(process_id who, std::chrono::milliseconds grace);

  /// Lets the child `pid` exit after SIGTERM from another process; `stop_requested`: only if it was stopped
  /// here, too. Its end counts as its own. Ignores processes that are not children.
  void let_leave(pid_t pid, bool stop_requested);

  /// Stops everything, in order of roles: workers, then servers, then, `with_master`, a master; returns when
  /// all have ended.
  void stop_all(std::chrono::milliseconds grace, bool with_master = true);

  /// The process id of a running process_id, or 0.
  pid_t pid(process_id who) const;

  /// All instances that run or are being started, each once.
  std::vector<process_id> all() const;

  /// The number of a role's instances that run or are being started.
  std::size_t running(role of) const;

 private:
  using clock = std::chrono::steady_clock;
  struct child {
    pid_t pid = 0;    // 0: it is being started
    int handle = -1;  // pidfd: readable when the process has ended
    bool stop_requested = false;
    std::uint64_t kills_before = 0;  // the system's count when it was started
    std::uint64_t number = 0;        // of its pipe
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
  std::vector<start_order> dropped_;  // that were stopped: their ends must be reported
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

/// Makes the kernel kill this process when its parent ends; false if the parent is already gone. `parent` is
/// the parent's process id, taken before the fork.
bool die_with_parent(pid_t parent) noexcept;

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/process.ipp"
#endif
