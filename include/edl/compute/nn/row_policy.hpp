// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl::nn {

/// How the weights of a row are stored. As bfloat16 they take half the memory. A step rounds them up or down
/// at random, so that small steps are not lost. Source: Gupta et al., "Deep Learning with Limited Numerical
/// Precision", 2015. The optimiser's slots are always float32.
enum class row_values { float32, bfloat16 };

/// Which rows are evicted when a table is full.
enum class row_victims {
  least_recent,  ///< the least recently trained
  least_used     ///< the least often trained
};

/// Which ids get a row of a table, and how long they keep it.
struct row_policy {
  int admission = 1;               ///< an id gets a row when this many minibatches have contained it
  std::uint64_t unused_steps = 0;  ///< a row unused for this many steps is removed; 0: never
  /// The largest number of rows over all servers, and of ids that wait for admission. Rounded up to a
  /// multiple of 4,096. 0: no limit.
  std::uint64_t most_rows = 0;
  row_victims victims = row_victims::least_recent;
  row_values values = row_values::float32;

  friend constexpr bool operator==(row_policy const&, row_policy const&) = default;
};

}  // namespace edl::nn
