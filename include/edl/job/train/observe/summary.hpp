// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/core/log.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/master/coordinator.hpp"
#include "edl/job/train/observe/progress.hpp"

namespace edl::train {

/// The facts for the summary at the end of a job.
struct ended_job {
  edl::job const& job;
  master::coordinator const& decisions;
  progress_view const& seen;
  std::vector<std::string> command;  ///< the user's command, word by word; empty: none
  bool early = false;                ///< whether --early_stopping or the model has ended it
  std::string plan = {};             ///< of --memory_budget; empty: none
};

/// Lines for the user when a job is complete: what was done in which time, the model's metrics and location,
/// and, after training, the next commands. Reads the directories that the job has written to.
std::vector<std::string> summary(ended_job const& j, time_point now);

/// Lines for the user when --dry_run is complete: what was tried. Reads back what was written; throws error
/// if it cannot.
std::vector<std::string> dry_run_report(ended_job const& j);

/// Writes the summary of a complete job: plain on a terminal, otherwise as log lines. The lines of --dry_run,
/// the command's result, go to standard output. Throws as `dry_run_report`.
void tell(ended_job const& j, time_point now, logger const& log);

/// Reports a complete evaluation: in the log, or, as the result of `evaluate`, on standard output.
void tell_evaluation(job const& j, std::string const& line, progress_view& seen, logger const& log);

/// Reports that a job was stopped, `how`, from what it can resume, and the command for that. `seen` and
/// `command` as in `ended_job`.
void tell_stopped(std::string const& how, job const& j, progress_view const& seen,
                  std::vector<std::string> const& command, logger const& log);

/// The command with another value of a flag, which is added if it is not given.
std::vector<std::string> with_flag(std::vector<std::string> command, std::string const& name,
                                   std::string const& value);

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/observe/summary.ipp"
#endif
