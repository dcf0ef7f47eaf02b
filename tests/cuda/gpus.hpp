// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cuda/gpu.hpp"

/// So many different GPUs that can sum among themselves; none where there are fewer, and the test says so,
/// and ends.
inline std::vector<std::shared_ptr<edl::accelerator>> gpus_or_skip(int count) {
  std::vector<std::shared_ptr<edl::accelerator>> all;
  for (int i = 0; i < count; ++i) {
    auto gpu = gpu_or_skip({.index = i});
    if (!gpu) return {};
    auto const self = gpu->identity();
    for (auto const& other : all)
      if (other->identity().uuid == self.uuid) {
        MESSAGE("skipped: there are fewer than " << count << " GPUs");
        return {};
      }
    if (self.nccl == 0) {
      MESSAGE("skipped: " << self.lacking);
      return {};
    }
    all.push_back(std::move(gpu));
  }
  return all;
}
