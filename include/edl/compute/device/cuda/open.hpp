// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "edl/compute/device/accelerator.hpp"
#include "edl/compute/device/cuda/options.hpp"
#include "edl/core/error.hpp"

namespace edl {

/// No GPU is to be had. `installed`: the library is there, so that somebody may have expected one.
struct cuda_unavailable : error {
  cuda_unavailable(std::string const& why, bool with_library) : error(why), installed(with_library) {}
  bool installed;
};

/// A GPU. What computes on it lives in a library of its own, opened when a GPU is asked for. So programs need
/// neither the toolkit to be built nor a driver to start. Errors carry the place and the words of CUDA.
///
/// Opens the library (`libedl-cuda.so`, beside the program, in ../lib, where its own libraries are, or as
/// EDL_CUDA_LIBRARY names it) and a GPU. Throws cuda_unavailable, which says what is missing: the library,
/// one that it needs, the driver, or a GPU.
std::shared_ptr<accelerator> open_cuda(cuda_options const& o);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cuda/open.ipp"
#endif
