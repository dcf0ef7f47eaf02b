// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::controller {

/// In which pool of nodes the workers of a TrainingJob with `spec.spot` run. Pure functions.

/// USD per hour of one worker's machine, by the names of pools. They take precedence over those of specs.
using pool_prices = std::map<std::string, double>;

/// Reads prices from a JSON object such as {"us-east-1a": 0.92, "on-demand": 3.06}. Throws error, which says
/// what is wrong with it.
pool_prices read_prices(std::string const& text);

/// Whether the job has no pods because machines are likely to become cheaper, or to be had, in time.
bool waits_for_pool(kubernetes::training_job const& job);

/// The node labels of the pool that the status names, as JSON for `annotation::pool`; empty: none.
std::string pool_selector(kubernetes::training_job const& job, kubernetes::training_job_status const& status);

/// The template of workers, with the node labels of the pool that the job's status names.
kubernetes::template_text template_in_pool(kubernetes::training_job const& job);

struct pool_options {
  double interval = 60;   ///< seconds between decisions
  double patience = 120;  ///< seconds without a node after which a pool counts as down; a quarter of it while
                          ///< nodes of the job are about to go
  double retry = 600;     ///< seconds until a pool that was down is tried again, unless it gets a node before
};

/// What is remembered between two calls. A new controller begins with an empty one.
struct pool_memo {
  double decided = 0;                            ///< when
  double waiting_since = 0;                      ///< for a node in the current pool; 0: not waiting
  std::map<std::string, std::uint32_t> nodes{};  ///< that each pool had
  std::set<std::string> returned{};  ///< pools that got a node since they were down, and were not tried since
  double starting_since = 0;         ///< the first worker there has a node, and none runs; 0: that is not so
};

struct pool_view {
  kubernetes::training_job const& job;
  std::vector<pod_record const*> const& members;
  std::optional<double> standstill;  ///< seconds that the last change of size took, as its master reports
  std::string leaving_nodes{};       ///< by notices, as "n1,n2"
  bool no_room = false;              ///< the plan has no room for the job in its pool
  pool_prices const& prices;
  std::function<std::uint32_t(std::map<std::string, std::string> const& labels)> const& nodes_with;
  double now = 0;  ///< seconds since 1970
};

/// Adds up what the running workers have cost, notes which pools are up, and decides from time to time, by
/// `autoscaler::decide`, in which one they are to run. Returns when to look again, and an event if the pool
/// has changed.
///
/// - A pool is up while workers run in it. It is down when most of their nodes are about to go, or a pod has
///   been without a node there for `pool_options::patience`, unless half of the workers run there already.
/// - Time in which no controller looked is charged as if the present workers had run.
///
/// @pre `view.job.spec.spot`
struct pool_step {
  double again_at = 0;
  std::optional<job_event> event{};
};
pool_step choose_pool(pool_view const& view, pool_memo& memo, kubernetes::training_job_status& status,
                      pool_options const& options = {});

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/pools.ipp"
#endif
