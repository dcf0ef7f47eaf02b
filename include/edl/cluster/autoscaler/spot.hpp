// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace edl::autoscaler {

/// What was seen of a pool: whether its machines could be had, and how long. Enough for its rates.
struct spot_sightings {
  double up_hours = 0, down_hours = 0;
  int losses = 0, returns = 0;
  std::optional<bool> up;  ///< at the last sight; empty: never seen
  double at = 0;           ///< hour of the last sight

  /// Sights come in order of time. Between two that agree the pool counts as unchanged, otherwise half of the
  /// time counts for each.
  void saw(double hour, bool is_up);
};

/// Machines with one price, lost together, that the job may run on: a zone's spot market. Prices in USD per
/// hour for all of the job's machines.
struct spot_pool {
  std::string name;
  double price = 0;       ///< now
  double move_hours = 0;  ///< paid, but without progress, if the job goes there from where it is
  double move_usd = 0;    ///< for carrying its state there
  spot_sightings seen;
};

/// All that a decision depends on. It has no future: only what was seen so far.
struct spot_state {
  double now = 0, deadline = 0;  ///< hours
  double work = 0;               ///< hours of progress that are missing
  double until_next = 0;         ///< hours until the next decision
  double on_demand = 0;          ///< USD per hour of machines that nobody takes away
  double on_demand_hours = 0;    ///< without progress, if the job goes there from the worst of the pools
  std::optional<double> budget;  ///< USD that are left; the deadline comes first
  enum class place { nowhere, spot, on_demand } at = place::nowhere;
  std::size_t pool = 0;  ///< of `pools`, if it runs on spot; below their number
  std::vector<spot_pool> pools;
};

struct spot_placement {
  spot_state::place at = spot_state::place::nowhere;
  std::size_t pool = 0;
  double expected = 0;  ///< USD that the rest is likely to cost
  std::string reason;   ///< for a person
};

/// Where a job that moves cheaply should run until the next decision. Pure. A pool that is named may turn out
/// to have no machines: tell its sightings so, and ask again.
///
/// Each pool is taken for a Markov chain of two states, with rates from its sightings and a prior: one loss
/// in 8 hours, one return in 3. The cheapest pool that is up is then nearly such a chain, too. Backward
/// induction over the remaining time and slack (time less work), in 60 steps, compares the least expected
/// cost of running now and of waiting. The deadline is no matter of expectation: what could cost it is not
/// chosen, as long as machines on demand can be had, and start within `on_demand_hours`.
///
/// @pre all numbers are finite, and none is negative
spot_placement decide(spot_state const& s);

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/spot.ipp"
#endif
