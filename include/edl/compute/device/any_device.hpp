// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "edl/compute/device/device.hpp"

namespace edl {

/// The device that is chosen when the program runs: any backend, which is not null.
struct any_device {
  using scalar = float;
  using backend = edl::backend;
  using options = std::shared_ptr<backend>;

  static std::shared_ptr<backend> open(options const& chosen) { return chosen; }
};

static_assert(device<any_device>);

}  // namespace edl
