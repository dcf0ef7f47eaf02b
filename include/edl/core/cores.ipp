// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>

#include "edl/core/control_group.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/inline.hpp"

namespace edl {
namespace detail {

/// Cores that one group grants; nothing where it sets no limit.
inline std::optional<double> quota_of(std::filesystem::path const& group) {
  double quota = 0, period = 0;
  if (std::ifstream v2(group / "cpu.max"); v2 >> quota >> period && period > 0) return quota / period;
  std::ifstream v1_quota(group / "cpu.cfs_quota_us"), v1_period(group / "cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE int granted_cores(int cores, std::filesystem::path const& membership,
                             std::filesystem::path const& groups) {
  double least = std::max(cores, 1);
  for (auto const& group : control_groups("cpu", {membership, groups}))  // every group above limits as well
    if (auto const quota = detail::quota_of(group)) least = std::min(least, *quota);
  return std::max(1, int(least));
}

EDL_INLINE int granted_cores() {
  cpu_set_t allowed;
  int const cores = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                        ? CPU_COUNT(&allowed)
                        : int(std::thread::hardware_concurrency());
  return granted_cores(cores, "/proc/self/cgroup", "/sys/fs/cgroup");
}

EDL_INLINE std::vector<int> own_processors(int threads) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) != threads ||
      long(threads) >= ::sysconf(_SC_NPROCESSORS_ONLN))
    return {};
  std::vector<int> all;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) all.push_back(i);
  return all;
}

EDL_INLINE void pin_to(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

}  // namespace edl
