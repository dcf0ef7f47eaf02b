// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace edl::nn {

/// How the weights of a row are kept. As bfloat16 they take half the memory. A step rounds them up or down by
/// chance, so that small steps are not lost. Source: Gupta et al., "Deep Learning with Limited Numerical
/// Precision", 2015. The optimiser's slots are float32 always.
enum class row_values { float32, bfloat16 };

/// Which rows go when a table is full.
enum class row_victims {
  least_recent,  ///< those that were not trained for the longest time
  least_used     ///< those that were trained least often
};

/// Which ids get a row of a table, and how long they keep it.
struct row_policy {
  int admission = 1;               ///< an id gets a row when this many minibatches have had it
  std::uint64_t unused_steps = 0;  ///< a row goes that was in none of so many steps; 0: none goes so
  /// There are never more rows, over all servers, and as many ids at most that wait for admission. It is
  /// rounded up to a multiple of 4,096. 0: no bound.
  std::uint64_t most_rows = 0;
  row_victims victims = row_victims::least_recent;
  row_values values = row_values::float32;

  friend constexpr bool operator==(row_policy const&, row_policy const&) = default;
};

}  // namespace edl::nn
