// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace edl::controller {

/// What a policy knows of a job.
struct claimant {
  int min = 1, most = 1;        ///< workers; `most` is max, or less where more would add nothing
  double share = 0;             ///< of the cluster, that one worker takes: its dominant resource's
  std::vector<double> gains{};  ///< what each of `most` workers adds, relative to one: speed_curve::gains
  int tried = 0;                ///< the largest size that was measured
  std::optional<double> seconds_left{};  ///< of its work, for one worker; none: not measured yet
  int there = 0;      ///< workers that it had before the plan: what they are worth counts with a bonus
  double margin = 0;  ///< that bonus, as a part of what was measured: noise is to move nobody
  double fair = 0;    ///< how many workers max-min fairness would give it, nodes' borders apart
};

/// Who is given room that is left when every job has its least. Pure.
struct policy {
  char const* name;
  char const* help;

  /// How much the worker deserves room that comes when there are n, n >= min. The greater value has it; an
  /// equal one takes nothing away.
  double (*worth)(claimant const& who, int n);
};

/// The policies: fair (the first, and the default), throughput, completion.
std::vector<policy> const& policies();

/// Throws usage_error that lists them.
policy const& policy_called(std::string const& name);

/// Sets `fair` of each: max-min fair shares of one divisible cluster, each between min and most.
void share_fairly(std::vector<claimant*> const& among);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/autoscaler/policy.ipp"
#endif
