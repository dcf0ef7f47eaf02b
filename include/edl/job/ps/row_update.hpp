// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace edl::ps {

/// Rows of a table in a push or pull.
struct row_update {
  std::vector<std::uint64_t> ids;
  std::vector<float> values;  ///< gradients, or weights

  /// The checksum of the rows up to `end` when they were added, where memory is watched.
  struct piece {
    std::size_t end;
    std::uint64_t sum;
  };
  std::vector<piece> pieces = {};
};

}  // namespace edl::ps
