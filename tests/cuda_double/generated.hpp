// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace edl::cuda_double {

/// Machine code as the double of NVRTC makes it: this, and a shared library. Its kernels get what a block and
/// its threads are from `edl_hooks`; for each it has `launch_NAME(argument)` and `size_NAME`.
struct code_header {
  static constexpr std::uint64_t known = 0x656c62756f64'4c44;

  std::uint64_t magic = known, size = 0;
};

/// What kernels ask the double for. The source that the double of NVRTC puts before theirs repeats it.
struct hooks {
  void *thread, *block, *block_size, *grid_size;
  void (*wait_for_block)();
  std::uint64_t (*exchange)(unsigned lanes, std::uint64_t value, unsigned from, bool own);
};

}  // namespace edl::cuda_double
