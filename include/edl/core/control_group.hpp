// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace edl {

/// The system's files that describe control groups; tests substitute their own.
struct group_files {
  std::filesystem::path membership = "/proc/self/cgroup", groups = "/sys/fs/cgroup",
                        whole_machine = "/proc/vmstat";
};

/// The directories of this process's control group (v2, or v1 with this controller) and of those that contain
/// it, the innermost first. They need not exist: inside a container the path is that of the host.
std::vector<std::filesystem::path> control_groups(std::string_view controller, group_files const& of = {});

/// How many processes of this process's control group the kernel has killed because memory ran out. If the
/// group does not report it, the count of the whole machine.
std::uint64_t memory_kills(group_files const& of = {});

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/core/control_group.ipp"
#endif
