// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::controller::detail {

/// Makes room for one pod of the shape by removing workers that each deserve less than `than`. Those that
/// deserve least go first, and none goes from below its job's min. `spare`: who was resized lately is left
/// alone, and so is the headroom. `self`: a job that gives nothing. Returns the node; -1: there is no such
/// choice.
int make_room(allocation& a, int shape, claim than, bool spare, cause why, int self = -1);

/// A node with room for a pod that must have it: free, or about to be, or made by shrinking. -1: none.
int find_room(allocation& a, int shape, cause why);

/// Brings the cluster's load down by enough for one of the shape, where a node has the room already.
bool make_load(allocation& a, int shape, claim than, int self);

/// Gives the headroom back to services that have taken it. True when somebody had to leave.
bool trim(allocation& a);

}  // namespace edl::controller::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/shrinking.ipp"
#endif
