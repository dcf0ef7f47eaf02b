// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

struct opened {
  nccl functions;
  std::string why;

  opened() {
    char const* const from_environment = std::getenv("EDL_NCCL_LIBRARY");
    // It stays open: its threads would outlive it otherwise.
    void* const library =
        ::dlopen(from_environment ? from_environment : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why = fmt::format("NCCL does not load: {}", ::dlerror());
      return;
    }
    auto const find = [&](auto& into, char const* name) {
      void* const at = ::dlsym(library, name);
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(at);
      if (!at && why.empty()) why = fmt::format("NCCL has no {}: 2.14 is the oldest that will do", name);
    };
    find(functions.version, "ncclGetVersion");
    find(functions.words, "ncclGetErrorString");
    find(functions.draw, "ncclGetUniqueId");
    find(functions.join, "ncclCommInitRankConfig");
    find(functions.state, "ncclCommGetAsyncError");
    find(functions.all_reduce, "ncclAllReduce");
    find(functions.abort, "ncclCommAbort");
  }
};

}  // namespace

nccl const* nccl::open(std::string& why) {
  static opened const it;
  why = it.why;
  return why.empty() ? &it.functions : nullptr;
}

void nccl::check(int result, char const* doing) const {
  if (result != success && result != in_progress)
    throw error(fmt::format("NCCL: {}: {}", doing, words(result)));
}

}  // namespace edl::cuda_library
