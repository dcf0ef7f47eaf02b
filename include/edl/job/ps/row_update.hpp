// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace edl::ps {

/// Rows of a table that come or go.
struct row_update {
  std::vector<std::uint64_t> ids;
  std::vector<float> values;  ///< gradients, or weights
};

}  // namespace edl::ps
