// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/core/process_id.hpp"

namespace edl::platform {

/// Exit code of a process that has given up waiting for others: for its master, as a rule. Nobody's fault.
inline constexpr int gave_up_waiting = 75;  // EX_TEMPFAIL

/// Exit code of a master whose job is suspended: what is trained is kept, and another master goes on with it.
inline constexpr int suspended = 79;

/// How a process ended.
struct ending {
  process_id who;
  int code = 0;                 ///< exit code, when it left by itself
  int signal = 0;               ///< what killed it; 0 when it left by itself
  bool stop_requested = false;  ///< it was told to stop
  bool outside = false;         ///< the platform took it away: nobody's fault
  bool memory = false;          ///< the system killed it because memory was short
  std::string words;  ///< how, where the platform says more than code and signal: "was preempted: …"
  bool failed() const {
    return !stop_requested && !outside && code != gave_up_waiting && (code != 0 || signal != 0);
  }
};

/// In words: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe(ending const& e);

using environment = std::vector<std::pair<std::string, std::string>>;

/// What runs when a master begins.
struct findings {
  std::vector<process_id> running;
  std::uint32_t next_worker = 0;  ///< all ids of workers that the platform knows of are below
};

/// Another size that a user wants; nothing: as it is.
struct size_request {
  std::optional<std::uint32_t> workers, servers;
  std::vector<std::uint32_t> leave = {};  ///< workers that are to be among those that go
};

/// What the master hears of its platform. All are called on the node's thread.
struct observer {
  /// A process has ended. `number`: of the event, where the platform counts them; otherwise 0.
  std::function<void(ending const& how, std::uint64_t number)> ended;
  /// A process is told to leave by others than the master, and will end.
  std::function<void(process_id who, std::string const& why)> leaving;
  /// At the start, once all earlier endings have been told: what runs.
  std::function<void(findings const& what)> found;
  /// A user wants another number of workers or servers: empty, or why not.
  std::function<std::string(size_request const& wanted)> scale;
  /// The platform refuses what every job needs, and time does not mend it: in words, with the way out.
  std::function<void(std::string const& why)> refused;
  /// The platform cannot tell any more what happens, because of `why`: the job cannot go on.
  std::function<void(std::string const& why)> failed = {};
  /// The job is to end so that it can go on later. Told again and again.
  std::function<void()> suspend = {};
  /// This master is the job's no more: another takes, or has taken, its place.
  std::function<void(std::string const& why)> superseded = {};
};

/// What starts and stops the processes of a job for its master: this machine, or a cluster. It only does as
/// told and tells what happens to them; who is replaced is the master's decision.
class platform {
 public:
  virtual ~platform() = default;

  /// Starts `who`, for the first time or in the place of process `instead_of`. On the node's thread.
  virtual void start(process_id who, std::optional<std::uint32_t> instead_of) = 0;

  /// Asks `who` to leave, and kills it when it has not within `grace`. On the node's thread.
  virtual void stop(process_id who, std::chrono::milliseconds grace) = 0;

  /// Stops all but the master, and returns when they have ended. `left` names the processes that have said
  /// that they leave by themselves: what can be seen of them afterwards stays. It is asked when the grace has
  /// passed, because somebody may say so until then. Starts nothing any more. On a thread that is not the
  /// node's.
  virtual void stop_all(std::chrono::milliseconds grace,
                        std::function<std::vector<process_id>()> const& left) = 0;

  /// Shows users how the job does, where the platform has a place for it. On any thread.
  virtual void show(std::string const& /*status: "Running", "Finished", "Failed"*/,
                    std::string const& /*line*/) {}

  /// Shows programs how the job does, as JSON, in the same place. On any thread.
  virtual void report(std::string const& /*json*/) {}

  /// Shows users what the job has been waiting for too long, in the same place; empty: nothing any more. On
  /// any thread.
  virtual void waits(std::string const& /*what*/) {}
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/job/platform/platform.ipp"
#endif
