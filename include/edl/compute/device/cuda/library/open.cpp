// SPDX-License-Identifier: Apache-2.0
// The library's only door.
#include <cstdio>
#include <string>
#include <string_view>

#include "edl/compute/device/cuda/library/engine.hpp"
#include "edl/core/error.hpp"
#include "edl/version.hpp"

/// Null, and why, where there is no engine to be had. `version` is the caller's: both sides share C++ types.
extern "C" __attribute__((visibility("default"))) edl::accelerator* edl_open_cuda(
    char const* version, edl::cuda_options const* options, char* why, std::size_t why_size) {
  try {
    if (std::string_view(version) != edl::package_version)
      throw edl::error(std::string("the library belongs to edl ") + edl::package_version +
                       ", the program of " + version);
    return new edl::cuda_library::engine(*options);
  } catch (std::exception const& e) {
    std::snprintf(why, why_size, "%s", e.what());
    return nullptr;
  }
}
