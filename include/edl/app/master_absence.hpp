// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::app {

/// The master has been away for longer than `--master_timeout`. That is no fault of this process, which ends
/// with the exit code `platform::gave_up_waiting`, so that no budget pays for it.
struct master_away : worker::given_up {
  using given_up::given_up;
};

/// How long a process of a job has been without its master, and whether it goes on waiting for a successor. A
/// platform may start one minutes later. It has no clock: the time goes in. Thread safety: distinct objects:
/// safe. Shared objects: unsafe.
class master_absence {
 public:
  explicit master_absence(std::chrono::seconds timeout) : timeout_(timeout) {}

  /// The master has answered: a line to log, if its absence was told; otherwise empty.
  std::string answered(time_point now);

  /// It has not, since `began` at least, because of `why`: a line to log, every few seconds; otherwise empty.
  std::string missed(std::string const& why, time_point began, time_point now);

  /// Whether it has been away for longer than anybody waits.
  bool over(time_point now) const { return since_ && now - *since_ >= timeout_; }

  /// What is waited for has not come in time, in words.
  std::string reason() const;

 private:
  std::chrono::seconds timeout_;
  std::optional<time_point> since_, announced_;
  std::string why_;
};

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/master_absence.ipp"
#endif
