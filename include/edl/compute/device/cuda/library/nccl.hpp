// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>
#include <string>

struct ncclComm;

namespace edl::cuda_library {

/// The few functions of NCCL that sums need, in the library that is there when a program runs
/// (`libnccl.so.2`, or as EDL_NCCL_LIBRARY names it). Their declarations are repeated here, as they have been
/// since NCCL 2.14 (nccl.h). So no machine that builds needs NCCL, and one build knows what to call whether
/// it was there or not. Thread safety: distinct communicators: safe.
struct nccl {
  enum result { success = 0, in_progress = 7 };
  static constexpr int float32 = 7, sum = 0;
  static constexpr int least_version = 21400;  ///< 2.14: communicators that do not block

  struct unique_id {
    char internal[128];
  };

  /// ncclConfig_t as it was in that version: NCCL reads as much as its size says.
  struct config {
    std::size_t size = sizeof(config);
    unsigned magic = 0xcafebeef;
    unsigned version = least_version;
    int blocking = 0;
  };

  int (*version)(int* number) = nullptr;
  char const* (*words)(int result) = nullptr;
  int (*draw)(unique_id* id) = nullptr;
  int (*join)(ncclComm** comm, int size, unique_id id, int rank, config* how) = nullptr;
  int (*state)(ncclComm* comm, int* result) = nullptr;
  int (*all_reduce)(void const* from, void* to, std::size_t count, int type, int operation, ncclComm* comm,
                    cudaStream_t stream) = nullptr;
  int (*abort)(ncclComm* comm) = nullptr;

  /// Opened once. Null where there is none to be had; `why` says so. Thread safety: safe.
  static nccl const* open(std::string& why);

  /// Throws edl::error with NCCL's words unless the call was well, or goes on.
  void check(int result, char const* doing) const;
};

}  // namespace edl::cuda_library
