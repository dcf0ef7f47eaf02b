// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edl/cluster/kueue/kueue_objects.hpp"

namespace edl::kueue {

/// A job's pods that hold quota. A pod that has ended holds none; one that is being deleted still does.
struct pods_now {
  std::uint32_t all = 0;      ///< pods of any role
  std::uint32_t workers = 0;  ///< worker pods, or the size last requested of the master if larger
  bool master_ready = false;
  std::uint32_t servers_running = 0, workers_running = 0;  ///< excluding those being deleted
};

struct situation {
  kubernetes::training_job const& job;
  std::vector<workload const*> workloads{};  ///< the Workloads that the job controls, by uid
  bool served = true;                        ///< whether the cluster has Kueue's API
  pods_now pods{};
  std::uint32_t wanted = 0;  ///< workers that the plan would give the job, disregarding quota
  std::function<pod_changes const*(std::string const& flavor)> flavor{};          ///< null: no such flavor
  std::function<std::optional<std::int64_t>(priority_choice const&)> priority{};  ///< value of a class
  double now = 0;                                                                 ///< seconds since 1970
};

struct options {
  double slice_timeout = 30;  ///< seconds until a pending slice is cut to one more worker
};

/// The consequences of Kueue's decision for a job, and the requests that the controller owes Kueue.
struct assessment {
  bool queued = false;    ///< Kueue manages the job
  bool may_run = true;    ///< false: the job has no pods, or must stop at a checkpoint
  bool may_start = true;  ///< false: existing pods continue, but no master may be created
  std::optional<std::uint32_t> most_workers{};   ///< the number for which it has quota
  std::string reason{}, message{};               ///< why it may not: a word in CamelCase, a sentence
  bool stalled = false;                          ///< only a person can change that
  std::map<std::string, pod_changes> changes{};  ///< for new pods, by pod set
  std::vector<api_write> requests{};             ///< in order; each is idempotent
  std::optional<double> again_at{};              ///< judge again then at the latest
};

/// A job with the queue label runs only while one of its Workloads is admitted. `spec.suspend` belongs to the
/// user: while it is true, the job has no Workload and therefore no quota.
///
/// - The controller creates a Workload while the job has no pods. It requests quota for spec.workers.max (or
///   replicas), and Kueue may admit fewer workers, down to min. A job with `elastic_annotation` requests min
///   and then grows by slices.
/// - The controller returns quota only after the last pod is gone: after an eviction, a suspension, the end
///   of the job, and also a deletion of the Workload, which a finalizer delays until then.
/// - A job that is evicted during a change keeps one Workload, which requests what the job needs to start.
/// - Decisions are stored in Workloads only, so a call at any moment continues from where the last one
///   stopped.
///
/// Pure. Thread safety: safe.
assessment judge(situation const& is, options const& o = {});

/// The requests owed for a Workload whose TrainingJob is gone. `pods`: how many of its pods still exist.
std::vector<api_write> judge_orphan(workload const& w, std::uint32_t pods);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue.ipp"
#endif
