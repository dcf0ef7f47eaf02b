// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/cluster/kueue/kueue_workload.hpp"

/// Workloads, and changes to them, as sent to the API server. A change includes the version of the object on
/// which it is based, so that the server refuses it (409) if another client was faster. Thread safety: safe.
namespace edl::kueue {

/// One request about a Workload. Its body is JSON text.
struct api_write {
  enum class verb {
    create,        ///< creates an object
    patch,         ///< RFC 6902 patch of the object
    patch_status,  ///< RFC 7386 patch of its status
    remove         ///< `body`: DeleteOptions
  };
  verb action = verb::create;
  std::string space, name;
  std::string body;
  std::string why{};  ///< a sentence for an Event of the job; empty: no Event
};

/// The number of workers that a Workload requests.
struct worker_ask {
  std::uint32_t count = 1;
  std::optional<std::uint32_t> least{};  ///< minimum that Kueue may admit
};

/// Looks up a priority class by name. Returns nothing if it does not exist or is not known yet.
struct priority_choice {
  std::string name{};
  bool of_kueue = false;  ///< a WorkloadPriorityClass, which affects quota only
  std::int64_t value = 0;
};

/// The job's queue; empty: it has none, and Kueue does not manage it.
std::string queue_of(kubernetes::training_job const& job);

/// Whether the job's quota follows its size through new slices (`elastic_annotation`).
bool elastic(kubernetes::training_job const& job);

/// The unique name of a job's n-th Workload: "tj-NAME-1f2e3d4c", "tj-NAME-1f2e3d4c-2".
std::string workload_name(kubernetes::training_job const& job, std::uint32_t n);

/// The n of a name made by `workload_name`; 0: the name has another form.
std::uint32_t workload_number(kubernetes::training_job const& job, std::string const& name);

/// The class that the job requests, by its label or in its pods' template. An empty name: none.
priority_choice requested_priority(kubernetes::training_job const& job);

/// The pod sets of a job: its master, its servers and its workers.
std::vector<pod_set> pod_sets_of(kubernetes::training_job const& job, worker_ask ask);

/// Creates a Workload. `replaces`: the Workload that this new slice is to replace, if any.
api_write create(kubernetes::training_job const& job, std::uint32_t n, worker_ask ask,
                 priority_choice const& priority, workload const* replaces = nullptr);

/// Rewrites all that the job decides about a Workload without quota.
api_write rewrite(workload const& w, kubernetes::training_job const& job, worker_ask ask,
                  priority_choice const& priority);

/// Changes only the size of a pod set.
api_write resize(workload const& w, std::string_view set, std::uint32_t count);

/// Whether a Workload matches the job's current pods, disregarding sizes.
bool describes(workload const& w, kubernetes::training_job const& job);

/// Returns the quota of an evicted Workload whose last pod is gone. `now`: RFC 3339.
api_write give_back(workload const& w, std::string const& now);

/// Sets a condition of a Workload.
api_write set_condition(workload const& w, std::string type, bool yes, std::string reason,
                        std::string message, std::string const& now);

/// Returns quota for pods of a set that are no longer needed.
api_write reclaim(workload const& w, std::string_view set, std::uint32_t count);

/// Removes the finalizer.
api_write release(workload const& w);

/// Deletes a Workload, provided that uid and version are still those of `w`.
api_write remove(workload const& w, std::string why);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_objects.ipp"
#endif
