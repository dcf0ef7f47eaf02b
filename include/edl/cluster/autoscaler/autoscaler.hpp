// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/plan.hpp"

namespace edl::autoscaler {

/// Decides how many workers each job gets. The same view gives the same plan. After a plan has been executed,
/// the next one changes nothing, or only uses room that moved workers, or workers that left for waiting pods,
/// have freed; no worker leaves for that.
///
/// - An admitted job never has fewer workers than its min; it is never suspended to make room.
/// - Waiting pods of other programs get room first, as soon as workers above min can leave. Room that is
///   free and that the scheduler does not use is given up after `promise`.
/// - Then jobs are admitted by priority and age, also by shrinking others: with all their fixed pods and
///   their min, or not at all. A job that cannot be admitted is skipped, until it has waited for
///   `starvation_timeout`. From then on it keeps later jobs waiting, if the empty cluster could hold it.
/// - The rest is given worker by worker: by priority, then by the policy. A worker takes another's room only
///   if it deserves more.
///
/// Terminates, because each exchange replaces workers by one that deserves more than each of them, so the
/// sorted list of claims only grows. Only the last rule spares recently resized jobs.
plan make_plan(cluster_view const& view, plan_options const& options = {});

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/autoscaler.ipp"
#endif
