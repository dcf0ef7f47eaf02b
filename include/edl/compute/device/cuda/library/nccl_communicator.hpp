// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "edl/compute/device/communicator.hpp"
#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/compute/device/cuda/library/nccl.hpp"

namespace edl::cuda_library {

/// `communicator` by NCCL, on the current GPU.
class nccl_communicator final : public communicator {
 public:
  struct options {
    nccl const& with;
    int processors = 1;  ///< of the GPU
    gpu_meeting where;
    int size = 1, rank = 0;
    std::function<cudaEvent_t(int mark)> point;  ///< in the order of the GPU's other work
  };

  explicit nccl_communicator(options o);
  ~nccl_communicator() override;

  bool ready() override;
  void sum(std::span<float> values, float weight, int mark) override;
  bool done() override;

 private:
  void end() noexcept;

  options options_;
  ncclComm* comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t end_ = nullptr;  // of the sums
  bool marked_ = true;         // `end_` stands behind the last of them
  cuda_kernels::queue queue_;
};

}  // namespace edl::cuda_library
