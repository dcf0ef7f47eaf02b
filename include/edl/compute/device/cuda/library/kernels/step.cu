// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "edl/compute/device/cuda/library/check.hpp"
#include "edl/compute/device/cuda/library/kernels/kernels.hpp"

namespace edl::cuda_kernels {
namespace {

__global__ void set(std::uint64_t* to, std::uint64_t value) { *to = value; }

}  // namespace

// By a kernel's argument, which is copied when the kernel is started: the host need not wait before it
// changes it.
void set_step(queue const& q, std::uint64_t* to, std::uint64_t step) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1), config.blockDim = dim3(1), config.stream = q.stream;
  cuda_library::check(cudaLaunchKernelEx(&config, set, to, step), "setting a step's number");
}

}  // namespace edl::cuda_kernels
