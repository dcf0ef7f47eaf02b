// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/progress.hpp"

namespace edl::train {

/// What the end of a job is told of.
struct ended_job {
  edl::job const& job;
  master::coordinator const& decisions;
  progress_view const& seen;
  std::vector<std::string> command;  ///< that a person gave, word by word; empty: nobody gives one
  bool early = false;                ///< whether --early_stopping has ended it
  std::string plan = {};             ///< of --memory_budget; empty: there is none
};

/// Lines for a person when a job is complete. They tell what was done in which time, what the model has
/// reached, where it lies, and, of training, which commands come next. Looks into the directories that the
/// job has written to.
std::vector<std::string> summary(ended_job const& j, time_point now);

/// Lines for a person when --dry_run is complete: what was tried. Reads what was written; throws error where
/// it cannot be read.
std::vector<std::string> dry_run_report(ended_job const& j);

/// Writes the lines that belong to the end of a complete job: as they are where a person watches, else as log
/// lines. Those of --dry_run, which are what the command is for, go to standard output. Throws as
/// `dry_run_report`.
void tell(ended_job const& j, time_point now, logger const& log);

/// Tells of an evaluation that is complete: in the log, or, of `evaluate`, whose result it is, on standard
/// output.
void tell_evaluation(job const& j, std::string const& line, progress_view& seen, logger const& log);

/// Says that a job was stopped, `how`, what there is to go on from, and the command that does. `seen` and
/// `command` as in `ended_job`.
void tell_stopped(std::string const& how, job const& j, progress_view const& seen,
                  std::vector<std::string> const& command, logger const& log);

/// The command with another value of a flag, which is added where it is not given.
std::vector<std::string> with_flag(std::vector<std::string> command, std::string const& name,
                                   std::string const& value);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/summary.ipp"
#endif
