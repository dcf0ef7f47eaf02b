// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/compute/device/cuda/open.hpp"
#include "edl/compute/device/device.hpp"

namespace edl {

/// A GPU. `open` throws edl::error where there is none.
struct cuda {
  using scalar = float;
  using backend = accelerator;
  using options = cuda_options;

  static std::shared_ptr<accelerator> open(options const& o = {}) { return open_cuda(o); }
};

static_assert(device<cuda>);

}  // namespace edl
