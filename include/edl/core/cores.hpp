// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace edl {

/// How many threads this process can keep busy, at least 1: the number of cores that it may run on, or less
/// if its control group (v2 or v1, or one that contains it) grants less time. A pod with `cpu=0.4` gets 1,
/// one with `cpu=2.5` gets 2.
int granted_cores();

/// The same, with files in place of /proc/self/cgroup and /sys/fs/cgroup. A file that cannot be read sets no
/// limit.
int granted_cores(int cores, std::filesystem::path const& membership, std::filesystem::path const& groups);

/// The processors of this process, in order, if it may run on exactly `threads` of the machine's and the
/// machine has more. Kubernetes' static policy grants whole cores this way, by a cpuset. No other process
/// runs on them, so each thread may have one to itself. Empty otherwise: the system then places threads
/// better.
std::vector<int> own_processors(int threads);

/// Restricts the calling thread to this processor, if the system allows it.
void pin_to(int processor);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/cores.ipp"
#endif
