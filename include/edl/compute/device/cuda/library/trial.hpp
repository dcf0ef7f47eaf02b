// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "edl/compute/device/cuda/library/kernels/kernels.hpp"
#include "edl/compute/device/precision.hpp"

namespace edl::cuda_library {

/// Whether kernels of libraries compute one convolution, or one dense layer, as it is defined. Each is tried
/// with random numbers, and with results that were no numbers before. Some hundred results are compared with
/// sums of products in float64, and all must be numbers. Takes memory of the GPU while it lives.
class trial {
 public:
  using tensors = cuda_kernels::conv_tensors;

  /// `real` says what is read (not null) and written. Where the GPU has no memory for such numbers beside
  /// them, these themselves are read, and written. Nothing is recorded into a graph meanwhile.
  trial(cuda_kernels::queue const& q, precision p, conv_geometry const& g, int batch, activation f,
        tensors const& real);
  trial(trial const&) = delete;
  trial& operator=(trial const&) = delete;
  ~trial();

  /// Whether run(tensors) is right. One that throws edl::error is not. Why not is said in `why`.
  bool accepts(std::function<void(tensors const&)> const& run, std::string& why) const;

 private:
  bool agrees(cuda_kernels::sum_of what, std::string& why) const;

  cuda_kernels::queue const& q_;
  precision precision_;
  conv_geometry g_;
  int batch_;
  bool relu_;
  tensors of_;
  std::byte* memory_ = nullptr;  // of all tensors
  std::byte* found_ = nullptr;   // what the comparison brings back
};

}  // namespace edl::cuda_library
