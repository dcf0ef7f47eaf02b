// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "edl/cluster/autoscaler/autoscaler.hpp"
#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/inventory.hpp"
#include "edl/cluster/kueue/kueue.hpp"

namespace edl::controller {

/// A job as it is now.
struct job_situation {
  job_entry const& entry;
  pod_record const* master = nullptr;        ///< the pod of its master's name, whoever owns it
  std::vector<pod_record const*> members{};  ///< the job's other pods
  std::optional<job_plan> plan{};            ///< its part of the last plan; nothing: no plan knows it yet
  std::optional<kueue::assessment> queue{};  ///< what Kueue decides, of a job with a queue
  std::function<inventory::node_state(std::string const& node)> state_of;
  double now = 0;                                                        ///< seconds since 1970
  std::function<std::string(std::string const& node)> pressure_of = {};  ///< none: nothing is known of it
};

struct reconcile_options {
  bool pod_groups = false;       ///< jobs' pods are gangs of the scheduler's, where it knows PodGroups
  double node_timeout = 10;      ///< a pod whose node does not exist is removed after so many seconds
  double suspend_timeout = 300;  ///< for a master to suspend its job, before it is stopped
  double first_backoff = 10, longest_backoff = 300;  ///< between attempts: doubles
  double steady = 600;                               ///< a master that lived for so long was not lost soon
  std::uint32_t most_crashes = 5;  ///< masters that crash soon, one after the other, until the attempt fails
  double progress_every = 10;      ///< between two writes of a status in which only progress differs
  double refusal_backoff = 60;     ///< until a size request that a master has refused is told again
};

/// What is to be done for a job, from what the API server says of it, and nothing else that matters. It may
/// be asked at any moment, after any number of these actions have been carried out or not. It always leads to
/// the same end.
///
/// - What has been decided stands in the status before it is acted upon. So an attempt that has failed is
///   counted once, and a job that has finished stays finished, whatever becomes of its pods.
/// - There is one master's pod at most, because its name is the job's.
/// - Pods of an attempt that has failed are gone before the next one begins. A master that was taken away
///   (its node lost, evicted, deleted) is replaced within its attempt, and its members stay.
///
/// Pure. `memo` is the job's, with what is to be remembered besides.
decision reconcile(job_situation const& is, job_memo& memo, reconcile_options const& options = {});

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/reconcile.ipp"
#endif
