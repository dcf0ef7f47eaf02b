// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::autoscaler::detail {

/// Keeps the room that an earlier plan promised to other programs' pods. Among those without a promise, the
/// largest choose first.
void keep_promises(allocation& a);

/// Finds or makes room for other programs' pods that wait for a node. True if one got room.
bool reserve(allocation& a);

/// Gives admitted jobs what they lack of their minimum. True if it gave something.
bool fill_up(allocation& a);

/// Fills up, and keeps available room for requested workers that have no node yet.
void replace_missing(allocation& a);

/// Admits jobs, each with its whole minimum or not at all. True if it admitted one.
bool admit(allocation& a);

}  // namespace edl::autoscaler::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/admission.ipp"
#endif
