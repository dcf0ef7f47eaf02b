// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace edl::ps {

/// Rows of a table that come or go.
struct row_update {
  std::vector<std::uint64_t> ids;
  std::vector<float> values;  ///< gradients, or weights
  std::uint64_t sum = 0;      ///< of accumulated ones, where memory is watched: what they came to
};

}  // namespace edl::ps
