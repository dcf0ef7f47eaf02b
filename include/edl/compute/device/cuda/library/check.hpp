// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "edl/core/error.hpp"

namespace edl::cuda_library {

/// Throws edl::error with CUDA's message unless `code` is success. It also throws for errors of earlier
/// asynchronous work.
inline void check(cudaError_t code, char const* doing) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error, which would persist
  throw error(std::string("GPU: ") + doing + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) +
              ")");
}

}  // namespace edl::cuda_library
