// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/cluster_view.hpp"
#include "edl/cluster/autoscaler/plan.hpp"

namespace edl::controller {

/// How many workers each job shall have. The same view gives the same plan. A plan that has been carried out
/// is followed by one that changes nothing, or that uses the room which moved workers have left, or workers
/// that made room for pods which wait: nobody leaves for that.
///
/// - A job that has been let in never has less than its min; it is never suspended to make room.
/// - Pods of others that wait for room have it first, as soon as workers above min can leave. Room that is
///   free and that the scheduler does not use is given up after `promise`.
/// - Then jobs are let in by priority and age, also by shrinking others: with all their fixed pods and their
///   min, or with nothing. One that cannot be is passed by, until it has waited for `starvation_timeout`.
/// - The rest is given worker by worker: by priority, then by the policy. A worker takes another's room only
///   where it deserves more.
///
/// Always ends: each exchange replaces workers by one that deserves more than each of them, so the sorted
/// list of what all deserve only grows. A job that was resized lately is left alone by the last rule alone.
plan make_plan(cluster_view const& view, plan_options const& options = {});

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/autoscaler.ipp"
#endif
