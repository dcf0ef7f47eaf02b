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

/// Exchanges the rows' gradients of all members of a group in a step, for every place (`step_sum`).
/// Afterwards each member has all of them, in the order of the places. They are sent as sums with zeros, an
/// id as four floats of 16 bits. A member sends about twice the size of all members' data.
///
/// Errors are collective::broken. Thread safety: one thread.
class row_exchange {
 public:
  /// `places`: as in `step_sum::options`.
  row_exchange(std::vector<table_shape> const& tables, std::size_t places);

  /// Enters a group of this many members, with this rank. Drops earlier contributions.
  void enter(int size, int rank);

  /// Contributes the rows of a minibatch for the `place`-th of this member's places, each gradient times
  /// `weight`.
  void bring(std::size_t place, std::span<sparse::row_gradients const> rows, float weight);

  /// Exchanges them. Returns, for each place with rows, in order: those of each table. They are valid until
  /// the next call. The next step starts empty.
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
