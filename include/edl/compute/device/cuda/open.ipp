// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "edl/compute/device/cuda/open.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/version.hpp"

namespace edl {
namespace detail {

inline constexpr char cuda_library_name[] = "libedl-cuda.so";

// The library stays open: memory and threads of CUDA's would outlive it otherwise.
EDL_INLINE void* open_cuda_library() {
  if (char const* const from_environment = std::getenv("EDL_CUDA_LIBRARY")) {
    if (void* const library = ::dlopen(from_environment, RTLD_NOW | RTLD_LOCAL)) return library;
    throw cuda_unavailable(
        fmt::format("GPU: the library that EDL_CUDA_LIBRARY names does not load: {}", ::dlerror()), true);
  }
  std::array<char, 4096> self{};
  auto const length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  std::string const program(self.data(), length > 0 ? std::size_t(length) : 0);
  std::string const folder = program.substr(0, program.rfind('/') + 1);
  // By its name alone it is also looked for where the program's own libraries are, as the linker was told.
  std::array<std::string, 3> const places{folder + cuda_library_name, folder + "../lib/" + cuda_library_name,
                                          cuda_library_name};
  bool const installed = ::access(places[0].c_str(), F_OK) == 0 || ::access(places[1].c_str(), F_OK) == 0;
  // CUDA's libraries are large: not for nothing.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver)
    throw cuda_unavailable("GPU: this machine has no NVIDIA driver; --device=cpu computes without one",
                           installed);
  ::dlclose(driver);
  std::string why;
  for (std::string const& path : places) {
    if (void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (std::string const reason = ::dlerror(); why.empty() || ::access(path.c_str(), F_OK) == 0)
      why = reason;
  }
  throw cuda_unavailable(
      fmt::format("GPU: {} does not load: {}; is edl built with -DEDL_CUDA=ON, and are cuBLAS and cuDNN "
                  "installed? EDL_CUDA_LIBRARY may name the library",
                  cuda_library_name, why),
      installed);
}

}  // namespace detail

EDL_INLINE std::shared_ptr<accelerator> open_cuda(cuda_options const& o) {
  using opener = accelerator* (*)(char const*, cuda_options const*, char*, std::size_t);
  void* const library = detail::open_cuda_library();
  auto const open = reinterpret_cast<opener>(::dlsym(library, "edl_open_cuda"));
  if (!open) throw cuda_unavailable(fmt::format("GPU: the library is none of edl's: {}", ::dlerror()), true);
  cuda_options with = o;
  if (!with.warn) with.warn = [](std::string const& text) { logger().warning(text); };
  std::array<char, 1024> why{};
  if (accelerator* const made = open(edl::package_version, &with, why.data(), why.size()))
    return std::shared_ptr<accelerator>(made);
  throw cuda_unavailable(why.data(), true);
}

}  // namespace edl
