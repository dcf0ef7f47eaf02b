// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/cluster.hpp"
#include "edl/app/signals.hpp"
#include "submit/sweep_jobs.hpp"

namespace edl::tool {

/// Runs a sweep's jobs, or what is left of them, at most `parallel` at once, and prints the table of trials.
/// The list of trials in `output` is replaced after each end. A job of the sweep that is there is waited for,
/// not made again; one that the list says failed is. An API server that is away is asked again without end.
/// Returns the exit code: `done`, `failed` where every trial has, or 128 and the signal that ended it. Jobs
/// that are under way then go on, and it says which. Throws usage_error for a directory with the trials of
/// another sweep, and api_error where the cluster refuses a job.
int run_sweep(cluster_sweep const& s, cluster& c, app::signals const& stop);

/// `edl sweep`.
int sweep(words const& line);

}  // namespace edl::tool
