// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "edl/cluster/autoscaler/policy.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::autoscaler {
namespace detail {

/// Max-min fairness: the worker goes to the job that would have the smallest share with it. A share is that
/// of the dominant resource (Ghodsi et al., NSDI 2011).
inline double worth_fair(claimant const& who, int n) { return -(n + 1) * who.share; }

/// The measured gain. An existing worker gets a bonus, so that only a clearly better use takes its place.
/// Existing means before this plan: nothing changes a worker's worth during a plan, and workers that this
/// plan adds get the bonus in the next one.
inline double gain(claimant const& who, int n) {
  double const measured = n < int(who.gains.size()) ? who.gains[std::size_t(n)] : 0;
  return n < who.there && measured > 0 ? measured * (1 + who.margin) : measured;
}

/// The gain in the sum of speeds, each relative to one worker's, per room taken. Each job's first worker
/// comes before all others.
inline double worth_throughput(claimant const& who, int n) {
  return (n == 0 ? 1e6 : 0) + gain(who, n) / who.share - n * who.share * 1e-6;
}

/// The gain, weighted by how little work the job has left. Every job gets at least a quarter of its fair
/// share, and at most four times the size that was measured. A job without measurements gets one worker, to
/// be measured. The exponent was chosen by simulation: with 1 long jobs starve; with 0 the remaining work
/// does not matter.
inline double worth_completion(claimant const& who, int n) {
  constexpr double owed = 1e9, unknown = 2e9;  // above all gains, but shares still count
  if (n < std::round(who.fair / 4)) return owed - (n + 1) * who.share;
  if (!who.seconds_left) return n == 0 ? unknown : -n * who.share;
  if (n >= 4 * who.tried) return -n * who.share;
  return gain(who, n) / who.share / std::pow(1 + *who.seconds_left, 0.35);
}

}  // namespace detail

EDL_INLINE std::vector<policy> const& policies() {
  static std::vector<policy> const all{
      {"fair", "equal shares between min and max, needs no measurement", detail::worth_fair},
      {"throughput", "where another worker adds most to the sum of relative speeds",
       detail::worth_throughput},
      {"completion", "least remaining work first; every job keeps a quarter of the fair share",
       detail::worth_completion},
  };
  return all;
}

EDL_INLINE policy const& policy_called(std::string const& name) {
  std::string names;
  for (policy const& p : policies()) {
    if (name == p.name) return p;
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw usage_error("unknown policy '" + printable(name, 64) + "': expected one of " + names);
}

EDL_INLINE void share_fairly(std::vector<claimant*> const& among) {
  // Finds the level of shares at which the cluster is just full, by bisection: usage grows with the level.
  auto const at = [](claimant const& c, double level) {
    return std::clamp(level / c.share, double(c.min), double(std::max(c.min, c.most)));
  };
  double low = 0, high = 1;
  for (int round = 0; round < 50; ++round) {
    double const level = (low + high) / 2;
    double taken = 0;
    for (claimant const* c : among) taken += at(*c, level) * c->share;
    (taken > 1 ? high : low) = level;
  }
  for (claimant* c : among) c->fair = at(*c, low);
}

}  // namespace edl::autoscaler
