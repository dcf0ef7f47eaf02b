// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/compute/device/device.hpp"

namespace edl {

/// A device that the program chooses at run time: any backend that is not null.
struct any_device {
  using scalar = float;
  using backend = edl::backend;
  using options = std::shared_ptr<backend>;

  static std::shared_ptr<backend> open(options const& chosen) { return chosen; }
};

static_assert(device<any_device>);

}  // namespace edl
