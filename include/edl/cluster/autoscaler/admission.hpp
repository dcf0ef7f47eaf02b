// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/cluster/autoscaler/allocation.hpp"

namespace edl::controller::detail {

/// Keeps the room that an earlier plan promised to pods of others. Of those without, the largest choose
/// first.
void keep_promises(allocation& a);

/// Finds or makes room for pods of others that wait for a node. True when one has been given room.
bool reserve(allocation& a);

/// Gives jobs that have been let in what they lack of their least. True when something was given.
bool fill_up(allocation& a);

/// Fills up, and keeps what room there is for workers that a job was told to have and that have no node yet.
void replace_missing(allocation& a);

/// Lets jobs in, each with all of its least or not at all. True when one was let in.
bool admit(allocation& a);

}  // namespace edl::controller::detail

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/admission.ipp"
#endif
