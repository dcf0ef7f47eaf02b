// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"
#include "edl/cluster/autoscaler/plan.hpp"

namespace edl::autoscaler::detail {

/// The plan that leads from the view to this allocation, with the reason for each number. Removes
/// reservations from the allocation.
plan outcome_of(allocation& a);

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/outcome.ipp"
#endif
