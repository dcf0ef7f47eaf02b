// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "edl/core/clock.hpp"
#include "edl/job/worker/links.hpp"

namespace edl::app {

/// The master has been absent for longer than `--master_timeout`. That is not the fault of this process,
/// which exits with the code `platform::gave_up_waiting`, so that it does not count against any budget.
struct master_away : worker::given_up {
  using given_up::given_up;
};

/// How long a process of a job has been without its master, and whether it continues to wait for a successor.
/// A platform may start one minutes later. It has no clock: callers pass the time. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class master_absence {
 public:
  explicit master_absence(std::chrono::seconds timeout) : timeout_(timeout) {}

  /// Call it when the master has answered: returns a line to log if its absence was logged; otherwise empty.
  std::string answered(time_point now);

  /// Call it when the master has not answered, at least since `began`, because of `why`: returns a line to
  /// log, every few seconds; otherwise empty.
  std::string missed(std::string const& why, time_point began, time_point now);

  /// Whether it has been absent for longer than the timeout.
  bool over(time_point now) const { return since_ && now - *since_ >= timeout_; }

  /// The message that the master did not return in time.
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
