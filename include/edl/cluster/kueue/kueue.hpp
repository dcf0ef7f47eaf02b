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

/// A job's pods, as far as quota is concerned. A pod that has ended holds none; one that is being deleted
/// does.
struct pods_now {
  std::uint32_t all = 0;      ///< of any role
  std::uint32_t workers = 0;  ///< of them, or how many the master was told last, if that is more
  bool master_ready = false;
  std::uint32_t servers_running = 0, workers_running = 0;  ///< without those that are being deleted
};

struct situation {
  controller::training_job const& job;
  std::vector<workload const*> workloads{};  ///< those that the job controls, by its uid
  bool served = true;                        ///< whether the cluster has Kueue's API
  pods_now pods{};
  std::uint32_t wanted = 0;  ///< workers that the plan gives it, without regard to quota
  std::function<pod_changes const*(std::string const& flavor)> flavor{};          ///< null: there is none
  std::function<std::optional<std::int64_t>(priority_choice const&)> priority{};  ///< of a class
  double now = 0;                                                                 ///< seconds since 1970
};

struct options {
  double slice_timeout = 30;  ///< seconds until a slice that is not admitted asks for one more worker alone
};

/// What Kueue's decision means for a job, and what its controller owes Kueue.
struct assessment {
  bool queued = false;    ///< Kueue decides about it
  bool may_run = true;    ///< false: it has no pods, or gives them up by a checkpoint
  bool may_start = true;  ///< false: pods that are there go on, and no master is made now
  std::optional<std::uint32_t> most_workers{};   ///< that it has quota for
  std::string reason{}, message{};               ///< why it may not: a word in CamelCase, a sentence
  bool stalled = false;                          ///< it stays so until a person does something
  std::map<std::string, pod_changes> changes{};  ///< by pod set, for pods that are made now
  std::vector<api_write> requests{};             ///< in order; each can be repeated without harm
  std::optional<double> again_at{};              ///< look again then, even if nothing happens
};

/// A job with the queue label runs while a Workload of it is admitted, and not otherwise. `spec.suspend`
/// stays the person's: while it is true the job has no Workload, so no quota.
///
/// - A Workload is made when the job has no pods. It asks for spec.workers.max (or replicas), and Kueue may
///   admit fewer, down to min. One with `elastic_annotation` asks for min, then grows by slices.
/// - Quota is given back when the last pod is gone, never before. That holds after an eviction, a suspension
///   and the end of the job. It holds when the Workload is deleted, too (its finalizer waits for that).
/// - Evicted in the middle of a change, a job has one Workload, which asks for what it needs to start.
/// - What was decided stands in Workloads alone: whoever asks at any moment goes on to the same end.
///
/// Pure. Thread safety: safe.
assessment judge(situation const& is, options const& o = {});

/// What is owed for a Workload whose TrainingJob is gone: `pods` of it are still there.
std::vector<api_write> judge_orphan(workload const& w, std::uint32_t pods);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue.ipp"
#endif
