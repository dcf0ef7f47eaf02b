// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace edl {

/// Files of a system that tell of control groups; others stand in for them in tests.
struct group_files {
  std::filesystem::path membership = "/proc/self/cgroup", groups = "/sys/fs/cgroup",
                        whole_machine = "/proc/vmstat";
};

/// The directories of this process's control group (v2, or v1 with this controller) and of those that contain
/// it, the innermost first. They need not be there: in a container the path is that of the host.
std::vector<std::filesystem::path> control_groups(std::string_view controller, group_files const& of = {});

/// How many processes of this process's control group the system has killed for their memory. Where the group
/// does not say, those of the whole machine.
std::uint64_t memory_kills(group_files const& of = {});

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/control_group.ipp"
#endif
