// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::autoscaler::detail {

/// Makes room for one pod of the shape by removing workers that each deserve less than `than`, those that
/// deserve least first, and none below its job's min. `spare`: does not touch recently resized jobs, or the
/// headroom. `self`: a job that gives nothing. Returns the node; -1: there is none.
int make_room(allocation& a, int shape, claim than, bool spare, cause why, int self = -1);

/// A node with room for a pod that must have it: free, soon free, or made by shrinking. -1: none.
int find_room(allocation& a, int shape, cause why);

/// Reduces the cluster's load enough for one of the shape, if a node has the room already.
bool make_load(allocation& a, int shape, claim than, int self);

/// Restores the headroom that services have used. True if a worker had to leave.
bool trim(allocation& a);

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/shrinking.ipp"
#endif
