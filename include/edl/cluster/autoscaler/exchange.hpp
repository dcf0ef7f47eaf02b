// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::controller::detail {

/// Gives what is left, and moves it where it is deserved more, until nobody deserves what it could be given.
/// True when something was given.
bool exchange(allocation& a);

}  // namespace edl::controller::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/exchange.ipp"
#endif
