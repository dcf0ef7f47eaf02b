// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/error.hpp"

namespace edl {

/// Memory has changed without a step: a bit has flipped.
struct memory_fault : error {
  using error::error;
};

}  // namespace edl
