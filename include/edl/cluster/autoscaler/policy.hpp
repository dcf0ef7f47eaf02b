// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace edl::autoscaler {

/// A policy's view of a job.
struct claimant {
  int min = 1, most = 1;        ///< workers; `most` is max, or less if more would not help
  double share = 0;             ///< of the cluster for one worker: that of its dominant resource
  std::vector<double> gains{};  ///< gain of each of `most` workers, relative to one: speed_curve::gains
  int tried = 0;                ///< the largest measured size
  std::optional<double> seconds_left{};  ///< of its work, for one worker; empty: not measured yet
  int there = 0;                         ///< workers before the plan: their worth gets a bonus
  double margin = 0;  ///< that bonus, relative to measurements, so that noise moves no worker
  double fair = 0;    ///< how many workers max-min fairness would give it, nodes' borders apart
};

/// Decides which job gets the room that remains when every job has its minimum. Pure.
struct policy {
  char const* name;
  char const* help;

  /// The worth of an additional worker when there are n, n >= min. The greater value gets the room; an equal
  /// one takes nothing away.
  double (*worth)(claimant const& who, int n);
};

/// The policies: fair (the first, and the default), throughput, completion.
std::vector<policy> const& policies();

/// Throws usage_error, which lists them, for an unknown name.
policy const& policy_called(std::string const& name);

/// Sets `fair` of each: max-min fair shares of one divisible cluster, each between min and most.
void share_fairly(std::vector<claimant*> const& among);

}  // namespace edl::autoscaler

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/policy.ipp"
#endif
