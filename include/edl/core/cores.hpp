// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace edl {

/// How many threads this process can keep busy, at least 1. They are the cores that it may run on. They are
/// fewer where its control group (v2 or v1, or one that contains it) grants less time. A pod with `cpu=0.4`
/// gets 1, one with `cpu=2.5` gets 2.
int granted_cores();

/// The same by files that stand in for /proc/self/cgroup and /sys/fs/cgroup. What cannot be read grants
/// everything.
int granted_cores(int cores, std::filesystem::path const& membership, std::filesystem::path const& groups);

/// The processors of this process, in order, where it has been given exactly as many as it runs `threads`,
/// out of more. Kubernetes' static policy gives whole cores so, by a cpuset. Nobody else runs there, so each
/// thread may have one to itself. Otherwise empty: the system places threads better.
std::vector<int> own_processors(int threads);

/// Lets the calling thread run on this processor alone, if the system allows it.
void pin_to(int processor);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/cores.ipp"
#endif
