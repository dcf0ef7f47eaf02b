// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/inventory.hpp"
#include "edl/cluster/controller/pools.hpp"
#include "edl/cluster/kueue/kueue.hpp"

namespace edl::controller {

/// The current state of a job.
struct job_situation {
  job_entry const& entry;
  pod_record const* master = nullptr;          ///< the pod with the name of the job's master, whoever owns it
  std::vector<pod_record const*> members{};    ///< the job's other pods
  std::optional<autoscaler::job_plan> plan{};  ///< its part of the last plan; nothing: not planned yet
  std::optional<kueue::assessment> queue{};    ///< Kueue's decision about a job with a queue
  std::function<inventory::node_state(std::string const& node)> state_of;
  double now = 0;                                                        ///< seconds since 1970
  std::function<std::string(std::string const& node)> pressure_of = {};  ///< empty: pressure is not known
  pool_prices prices = {};                                               ///< that are newer than the spec's
  std::function<std::uint32_t(std::map<std::string, std::string> const& labels)> nodes_with = {};
};

struct reconcile_options {
  bool pod_groups = false;       ///< pods of a job form a gang where the scheduler has PodGroups
  double node_timeout = 10;      ///< seconds until a pod whose node does not exist is removed
  double suspend_timeout = 300;  ///< seconds that a master has to suspend its job before its pod is deleted
  double first_backoff = 10, longest_backoff = 300;  ///< seconds between attempts; doubles
  double steady = 600;             ///< seconds that a master must live so as not to count as lost early
  std::uint32_t most_crashes = 5;  ///< consecutive early crashes of masters that fail the attempt
  double progress_every = 10;      ///< seconds between status writes that differ only in progress
  double refusal_backoff = 60;     ///< seconds until a refused size is requested again
  pool_options pools{};
};

/// Decides what to do for a job, from the state of the API server and nothing else that matters. It can be
/// called at any moment, whichever of its earlier actions have been carried out, and converges to the same
/// result.
///
/// - A decision is written to the status before it is acted upon. So a failed attempt is counted once, and a
///   finished job stays finished, whatever happens to its pods.
/// - At most one pod of a master exists, because its name derives from the job's.
/// - All pods of a failed attempt are gone before the next attempt starts. A master that was lost from
///   outside (node lost, evicted, deleted) is replaced within the attempt, and its members continue.
///
/// Pure, except that it updates `memo`, the job's.
decision reconcile(job_situation const& is, job_memo& memo, reconcile_options const& options = {});

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/reconcile.ipp"
#endif
