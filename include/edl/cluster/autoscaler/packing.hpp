// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::controller::detail {

/// Puts the workers that a job is to be given together. Numbers stay as they are. True when another node was
/// chosen for one.
bool put_together(allocation& a);

/// Moves workers that run to fewer nodes, of jobs whose size changes anyway or was the same for long. Only
/// room that is free counts, since the new worker starts before the old one leaves, and both have room until
/// then. The last step of a plan.
void move_together(allocation& a);

}  // namespace edl::controller::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/packing.ipp"
#endif
