// SPDX-License-Identifier: Apache-2.0
// Kernels that are compiled while the program runs: shared libraries, which the double of NVRTC makes.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generated.hpp"
#include "state.hpp"

using namespace edl::cuda_double;

struct CUkern_st {
  void (*start)(void* argument) = nullptr;
  std::size_t size = 0;  ///< of its argument
};
struct CUlib_st {
  void* opened = nullptr;
  int file = -1;  // open while it is loaded: its number is the library's name
  std::map<std::string, CUkern_st> kernels;
};

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, void const* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  if (forbidden()) return note(cudaErrorStreamCaptureUnsupported);
  code_header header;
  std::memcpy(&header, code, sizeof(header));
  if (header.magic != code_header::known) return note(cudaErrorInvalidValue);
  int const file = ::memfd_create("kernels", MFD_CLOEXEC);
  auto const* const from = static_cast<char const*>(code) + sizeof(header);
  if (file < 0 || ::write(file, from, header.size) != ssize_t(header.size)) fail("kernels cannot be written");
  void* const opened = ::dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) fail(std::string("kernels do not load: ") + ::dlerror());
  auto* const into = static_cast<hooks*>(::dlsym(opened, "edl_hooks"));
  if (!into) fail("these kernels were not compiled for the double");
  *into = {&threadIdx, &blockIdx, &blockDim, &gridDim, &wait_for_block, &exchange};
  *library = new CUlib_st{opened, file, {}};
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  std::lock_guard const hold(all().lock);
  finish_all();
  ::dlclose(library->opened);
  ::close(library->file);
  delete library;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, char const* name) {
  void* const start = ::dlsym(library->opened, (std::string("launch_") + name).c_str());
  void* const size = ::dlsym(library->opened, (std::string("size_") + name).c_str());
  if (!start || !size) return note(cudaErrorInvalidResourceHandle);
  *kernel = &library->kernels[name];
  **kernel = {reinterpret_cast<void (*)(void*)>(start), *static_cast<std::size_t const*>(size)};
  return cudaSuccess;
}

/// Only for kernels of libraries.
cudaError_t cudaLaunchKernel(void const* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  auto const& k = *static_cast<CUkern_st const*>(kernel);
  auto const* const argument = static_cast<std::byte const*>(arguments[0]);
  auto const held = std::make_shared<std::vector<std::byte>>(argument, argument + k.size);
  return launch({grid, block, shared, stream, nullptr, 0}, [start = k.start, held] { start(held->data()); });
}
