// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/collective/group.hpp"
#include "edl/job/collective/topology.hpp"

namespace edl::replica {

/// The rows' gradients that all members of a group bring to a step, of every place (`step_sum`). Each member
/// has all of them afterwards, in the order of the places. They travel in sums with zeros, an id as four
/// floats of 16 bits. A member sends about twice what all members bring.
///
/// Errors are collective::broken. Thread safety: one thread.
class row_exchange {
 public:
  /// `places`: as `step_sum::options` has it.
  row_exchange(std::vector<table_shape> const& tables, std::size_t places);

  /// From now on in a group of that many members, of which this is one. What was brought is dropped.
  void enter(int size, int rank);

  /// The rows of a minibatch for the `place`-th of this member's own, each gradient times `weight`.
  void bring(std::size_t place, std::span<sparse::row_gradients const> rows, float weight);

  /// Exchanges them. For each place that anybody has brought rows for, in order: those of each table. They
  /// are valid until the next call. Nothing is left for the next step.
  std::vector<std::vector<sparse::row_gradients>> exchange(collective::group& with);

 private:
  struct brought {
    bool any = false;
    std::vector<std::vector<std::uint64_t>> ids;  // by table
    std::vector<std::vector<float>> gradients;
  };
  void forget();

  std::vector<std::size_t> widths_;
  std::size_t fixed_places_, places_ = 0;
  collective::share own_;
  std::vector<brought> mine_;        // of own places
  std::vector<float> counts_, all_;  // what travels
  std::vector<std::uint64_t> ids_;
};

}  // namespace edl::replica

#ifdef EDL_HEADER_ONLY
#include "edl/job/replica/row_exchange.ipp"
#endif
