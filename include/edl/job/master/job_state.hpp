// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edl/job/master/command.hpp"
#include "edl/job/master/time.hpp"

namespace edl::master {

enum class job_phase {
  forming,      ///< the keepers of the model gather
  configuring,  ///< servers load the generation's state
  running,
  closing,  ///< all tasks are done, or none is leased any more: the last version is saved and evaluated
  finished,
  suspended,
  failed,
};

/// The state of a job: its phase and generation, and the pending commands. The parts of a coordinator share
/// one. Thread safety: distinct objects: safe. Shared objects: unsafe.
class job_state {
 public:
  job_phase phase() const { return phase_; }
  bool forming() const { return phase_ == job_phase::forming; }
  bool leasing() const { return phase_ == job_phase::running || phase_ == job_phase::closing; }
  bool ready() const { return !forming() && phase_ != job_phase::configuring; }
  bool over() const { return phase_ >= job_phase::finished; }

  /// A job that is over stays so.
  void enter(job_phase next);

  std::uint64_t generation() const { return generation_; }
  /// Generations only grow: the same number never means two states.
  void begin_generation() { ++generation_; }
  void raise_generation(std::uint64_t to);

  /// The time since which the job is being suspended.
  std::optional<time_point> suspending() const { return suspending_; }
  void suspend(time_point now) { suspending_ = now; }

  void add(command c) { commands_.push_back(std::move(c)); }
  void say(severity level, std::string text, topic of = topic::note) {
    add(log_line{level, std::move(text), of});
  }
  std::vector<command> take_commands() { return std::exchange(commands_, {}); }

  void finish();
  /// `missing`: why the training since the newest checkpoint is lost; empty: it is not.
  void end_suspended(std::string const& missing);
  /// No effect on a job that is over.
  void fail(std::string const& reason);
  std::string const& reason() const { return reason_; }  ///< of a job that failed

 private:
  job_phase phase_ = job_phase::forming;
  std::uint64_t generation_ = 1;
  std::optional<time_point> suspending_;
  std::string reason_;
  std::vector<command> commands_;
};

}  // namespace edl::master

#ifdef EDL_HEADER_ONLY
#include "edl/job/master/job_state.ipp"
#endif
