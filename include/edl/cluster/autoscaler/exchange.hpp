// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::autoscaler::detail {

/// Distributes the remaining room, and moves it to workers that deserve it more, until no change improves it.
/// True if it gave something.
bool exchange(allocation& a);

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/exchange.ipp"
#endif
