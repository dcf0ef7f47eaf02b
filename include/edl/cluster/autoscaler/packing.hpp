// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::autoscaler::detail {

/// Places a job's new workers together, without changing numbers. True if it chose another node for one.
bool put_together(allocation& a);

/// Moves running workers to fewer nodes, for jobs whose size changes anyway or has not changed for long. Uses
/// only free room, because the new worker starts before the old one leaves. The last step of a plan.
void move_together(allocation& a);

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/packing.ipp"
#endif
