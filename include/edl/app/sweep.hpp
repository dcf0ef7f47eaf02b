// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/app/signals.hpp"
#include "edl/app/sweep_plan.hpp"
#include "edl/job/config/job.hpp"
#include "edl/job/train/setup/program.hpp"

namespace edl::app {

/// A search over hyperparameters: runs of this program on this machine.
struct sweep {
  sweep_options options;
  monitor by;
  int parallel = 0;                      ///< concurrent runs; 0: as many as cores
  std::string output;                    ///< the sweep's directory, or `s3://BUCKET/PREFIX`
  std::string data_cache;                ///< where files for a bucket are before they are uploaded
  std::vector<std::string> train_flags;  ///< for every run
  result_format format = result_format::text;
};

/// Runs the sweep, or the rest of it: the list of trials in the directory records what is done, and is
/// replaced after each run. Progress, and the table at the end, go to standard output; or, with JSON, only
/// the list with the best trial, and progress goes to standard error. Returns the exit code: 0, 1 if every
/// run failed, or 128 plus the signal that ended it. Throws usage_error for a directory with the trials of
/// another sweep, checkpoint::directory_taken for one that another command is using.
int run_sweep(sweep const& s, train::program const& p, signals const& stop);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/sweep.ipp"
#endif
