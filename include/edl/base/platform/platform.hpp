// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/core/process_id.hpp"

namespace edl::platform {

/// Exit code of a process that has given up waiting for its master, or that the master has given up. Not a
/// failure.
inline constexpr int gave_up_waiting = 75;  // EX_TEMPFAIL

/// Exit code of a process whose machine is faulty: start its successor elsewhere.
inline constexpr int bad_machine = 76;

/// Exit code of a master whose job is suspended: its state is saved, and another master will resume it.
inline constexpr int suspended = 79;

/// How a process ended.
struct ending {
  process_id who;
  int code = 0;                 ///< exit code, if it exited
  int signal = 0;               ///< the signal that killed it; 0 if it exited
  bool stop_requested = false;  ///< it was stopped
  bool outside = false;         ///< the platform removed it: not a failure
  bool memory = false;          ///< the system killed it for lack of memory
  std::string words;            ///< the platform's description, if it is more specific: "was preempted: …"
  std::uint64_t order = 0;      ///< the number of its start order, if the platform numbers them
  bool failed() const {
    return !stop_requested && !outside && code != gave_up_waiting && (code != 0 || signal != 0);
  }
};

/// Describes it: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe(ending const& e);

/// The reason in the last line of a process's standard error: an error, without a log line's time and
/// location, printable and short. Empty for a log line that is not an error.
std::string last_words(std::string_view text);

using environment = std::vector<std::pair<std::string, std::string>>;

/// The processes that run when a master starts.
struct findings {
  std::vector<process_id> running;
  std::uint32_t next_worker = 0;  ///< greater than all workers' ids that the platform knows

  std::vector<std::uint32_t> ids(role of) const;  ///< of running processes
};

/// A new size requested by a user; empty: unchanged. Workers in `leave` are removed first; unknown ones are
/// ignored.
struct size_request {
  std::optional<std::uint32_t> workers, servers;
  std::vector<std::uint32_t> leave = {};
  std::string why = {};  ///< the reason, if one is given
};

/// The platform's interface to a master. Thread safety: called on the node's thread.
class observer {
 public:
  /// A process has ended. `number`: of the event, if the platform counts them; otherwise 0.
  virtual void ended(ending const& how, std::uint64_t number) = 0;

  /// A process other than the master has asked a worker to leave, and it will exit.
  virtual void leaving(process_id who, std::string const& why) = 0;

  /// All workers whose machines are short of a resource, with its description. The platform starts nothing
  /// else there meanwhile.
  virtual void pressed(std::map<std::uint32_t, std::string> const& /*workers*/) {}

  /// All workers that are to go to other machines, which the platform has chosen for their successors, with
  /// the reason.
  virtual void moving(std::map<std::uint32_t, std::string> const& /*workers*/) {}

  /// Called at the start, after all earlier endings: the running processes.
  virtual void found(findings const& what) = 0;

  /// A user requests another size: returns empty, or why it is refused.
  virtual std::string scale(size_request const& wanted) = 0;

  /// The job cannot continue: the platform permanently refuses what every job needs, or can no longer report
  /// events. `why` includes the remedy.
  virtual void failed(std::string const& why) = 0;

  /// The job must end so that it can resume later. May be called repeatedly.
  virtual void suspend() = 0;

  /// This master is superseded: another one takes, or has taken, its place.
  virtual void superseded(std::string const& why) = 0;

  /// The processes that have announced that they exit by themselves.
  virtual std::vector<process_id> left() = 0;

 protected:
  ~observer() = default;
};

/// Starts and stops the processes of a job for its master: this machine, or a cluster. It only executes
/// orders and reports events; the master decides which processes to replace.
class platform {
 public:
  virtual ~platform() = default;

  /// Starts `who`, for the first time or as the successor of process `instead_of`. Call on the node's thread.
  virtual void start(process_id who, std::optional<std::uint32_t> instead_of) = 0;

  /// Starts no more processes on the machine of worker `who`, if the platform has others. Returns the
  /// machine's name, for the platform of the next master; empty: it has none, or remembers it. Call on the
  /// node's thread.
  virtual std::string avoid(process_id /*who*/, std::string const& /*why*/) { return {}; }

  /// Starts no more processes on the machine of `who` until that is gone, if the platform has others: for a
  /// few minutes. Call on the node's thread.
  virtual void evade(process_id /*who*/, std::string const& /*why*/) {}

  /// Asks `who` to exit, and kills it after `grace`. Call on the node's thread.
  virtual void stop(process_id who, std::chrono::milliseconds grace) = 0;

  /// Stops all processes but the master, and returns when they have ended. Keeps the records of those that
  /// `observer::left` returns; calls it after the grace period, because more may leave until then. Starts
  /// nothing afterwards. Call on a thread other than the node's.
  virtual void stop_all(std::chrono::milliseconds grace) = 0;

  /// Shows the job's state to users, if the platform can. Call on any thread.
  virtual void show(std::string const& /*status: "Running", "Finished", "Failed"*/,
                    std::string const& /*line*/) {}

  /// Shows the job's state to programs, as JSON, in the same place. Call on any thread.
  virtual void report(std::string const& /*json*/) {}

  /// Shows users what the job has been waiting for too long, in the same place; empty: nothing any more. Call
  /// on any thread.
  virtual void waits(std::string const& /*what*/) {}
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/platform.ipp"
#endif
