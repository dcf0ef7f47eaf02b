// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/controller/allocation.hpp"

namespace edl::controller::detail {

/// Puts the workers of a job together, where its size changes anyway or was the same for long. Numbers stay
/// as they are. Workers that run are moved only if all these jobs together need fewer nodes after it. True
/// when something was moved.
bool repack(allocation& a);

}  // namespace edl::controller::detail

#ifdef EDL_HEADER_ONLY
#include "edl/controller/packing.ipp"
#endif
