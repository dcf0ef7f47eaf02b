// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "cluster/autoscaler/history.hpp"

namespace converged_plans {

using namespace history;

/// Asks, carries out, and asks again until a plan changes nothing; time passes between, so that no change is
/// held back.
inline void converge(cluster_view& v, plan_options const& o = {}) {
  for (int round = 0; round < 20; ++round) {
    plan const p = make_plan(v, o);
    if (changes_nothing(v, p)) return;
    apply(v, p);
    v.now += 1000;
  }
  FAIL("no rest after 20 plans");
}

inline cluster_view of(std::vector<node> nodes, std::vector<job_view> jobs) {
  return {.now = 1000, .nodes = std::move(nodes), .pods = {}, .jobs = std::move(jobs)};
}

}  // namespace converged_plans
