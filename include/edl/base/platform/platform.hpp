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

/// Exit code of a process that has given up waiting for its master, or that this has given up. Nobody's
/// fault.
inline constexpr int gave_up_waiting = 75;  // EX_TEMPFAIL

/// Exit code of a process whose machine is not to be trusted: another one is to be started elsewhere.
inline constexpr int bad_machine = 76;

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
  std::string words;        ///< how, where the platform says more than code and signal: "was preempted: …"
  std::uint64_t order = 0;  ///< by which it was started, where the platform numbers them
  bool failed() const {
    return !stop_requested && !outside && code != gave_up_waiting && (code != 0 || signal != 0);
  }
};

/// In words: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe(ending const& e);

/// What the last line of a process's standard error tells of its end: an error, without the time and place of
/// a log's line, printable and short. Empty where it is a log's line that is no error.
std::string last_words(std::string_view text);

using environment = std::vector<std::pair<std::string, std::string>>;

/// What runs when a master begins.
struct findings {
  std::vector<process_id> running;
  std::uint32_t next_worker = 0;  ///< all ids of workers that the platform knows of are below

  std::vector<std::uint32_t> ids(role of) const;  ///< of those that run
};

/// Another size that a user wants; nothing: as it is. Workers of `leave` are among those that go; who is none
/// goes unnoticed.
struct size_request {
  std::optional<std::uint32_t> workers, servers;
  std::vector<std::uint32_t> leave = {};
  std::string why = {};  ///< in words, where somebody says it
};

/// A master, as its platform sees it. Thread safety: called on the node's thread.
class observer {
 public:
  /// A process has ended. `number`: of the event, where the platform counts them; otherwise 0.
  virtual void ended(ending const& how, std::uint64_t number) = 0;

  /// A worker is told to leave by others than the master, and will end.
  virtual void leaving(process_id who, std::string const& why) = 0;

  /// Workers whose machines are short of something, and what of, in words: all of them. For a while: nothing
  /// else is started there meanwhile.
  virtual void pressed(std::map<std::uint32_t, std::string> const& /*workers*/) {}

  /// At the start, once all earlier endings have been told: what runs.
  virtual void found(findings const& what) = 0;

  /// A user wants another size: empty, or why not.
  virtual std::string scale(size_request const& wanted) = 0;

  /// The job cannot go on: the platform refuses what every job needs, and time does not mend it, or cannot
  /// tell any more what happens. In words, with the way out.
  virtual void failed(std::string const& why) = 0;

  /// The job is to end so that it can go on later. Told again and again.
  virtual void suspend() = 0;

  /// This master is the job's no more: another takes, or has taken, its place.
  virtual void superseded(std::string const& why) = 0;

  /// Who has said that it leaves by itself.
  virtual std::vector<process_id> left() = 0;

 protected:
  ~observer() = default;
};

/// What starts and stops the processes of a job for its master: this machine, or a cluster. It only does as
/// told and tells what happens to them; who is replaced is the master's decision.
class platform {
 public:
  virtual ~platform() = default;

  /// Starts `who`, for the first time or in the place of process `instead_of`. On the node's thread.
  virtual void start(process_id who, std::optional<std::uint32_t> instead_of) = 0;

  /// Starts no more processes where worker `who` runs, as far as the platform has other places. Returns a
  /// name of that place, for a platform of the master after this one; empty: it has none, or knows. On the
  /// node's thread.
  virtual std::string avoid(process_id /*who*/, std::string const& /*why*/) { return {}; }

  /// Asks `who` to leave, and kills it when it has not within `grace`. On the node's thread.
  virtual void stop(process_id who, std::chrono::milliseconds grace) = 0;

  /// Stops all but the master, and returns when they have ended. What can be seen of those that the observer
  /// says have left stays; it is asked when the grace has passed, because somebody may leave until then.
  /// Starts nothing any more. On a thread that is not the node's.
  virtual void stop_all(std::chrono::milliseconds grace) = 0;

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
#include "edl/base/platform/platform.ipp"
#endif
