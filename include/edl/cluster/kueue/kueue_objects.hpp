// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edl/cluster/kueue/kueue_workload.hpp"

/// Workloads and changes of them, as they are sent to the API server. A change names the version of the
/// object that it was made for, so that the server refuses it (409) where somebody else was faster. Thread
/// safety: safe.
namespace edl::kueue {

/// One request about a Workload. Bodies are JSON as text.
struct api_write {
  enum class verb {
    create,        ///< of an object
    patch,         ///< RFC 6902 patch of the object
    patch_status,  ///< RFC 7386 patch of its status
    remove         ///< `body`: DeleteOptions
  };
  verb action = verb::create;
  std::string space, name;
  std::string body;
  std::string why{};  ///< a sentence for a person, who sees it as an Event; empty: not worth one
};

/// How many workers a Workload asks for.
struct worker_ask {
  std::uint32_t count = 1;
  std::optional<std::uint32_t> least{};  ///< Kueue may admit fewer, down to it
};

/// What is known of a priority class by its name. Nothing: it does not exist, or is not known yet.
struct priority_choice {
  std::string name{};
  bool of_kueue = false;  ///< a WorkloadPriorityClass, which decides about quota alone
  std::int64_t value = 0;
};

/// The queue of a job; empty: it has none, and Kueue has no part in it.
std::string queue_of(controller::training_job const& job);

/// Whether the job's quota follows its size, by new slices (`elastic_annotation`).
bool elastic(controller::training_job const& job);

/// The name of the n-th Workload of a job, which nobody else's has: "tj-NAME-1f2e3d4c", "tj-NAME-1f2e3d4c-2".
std::string workload_name(controller::training_job const& job, std::uint32_t n);

/// What `workload_name` counted; 0: the name is of another form.
std::uint32_t workload_number(controller::training_job const& job, std::string const& name);

/// The class that the job asks for: by its label, or of its pods' template. An empty name: none.
priority_choice requested_priority(controller::training_job const& job);

/// The pod sets of a job: its master, its servers and its workers.
std::vector<pod_set> pod_sets_of(controller::training_job const& job, worker_ask ask);

/// `replaces`: the Workload that it is to take the place of, when it is a new slice.
api_write create(controller::training_job const& job, std::uint32_t n, worker_ask ask,
                 priority_choice const& priority, workload const* replaces = nullptr);

/// Everything that the job decides about, for a Workload that has no quota.
api_write rewrite(workload const& w, controller::training_job const& job, worker_ask ask,
                  priority_choice const& priority);

/// The size of a pod set alone.
api_write resize(workload const& w, std::string_view set, std::uint32_t count);

/// Whether a Workload asks for the job's pods as they are now, sizes apart.
bool describes(workload const& w, controller::training_job const& job);

/// It holds quota no more, as an evicted one whose last pod is gone. `now`: RFC 3339.
api_write give_back(workload const& w, std::string const& now);

/// Sets one of its conditions.
api_write set_condition(workload const& w, std::string type, bool yes, std::string reason,
                        std::string message, std::string const& now);

/// Pods of the set that are not needed any more.
api_write reclaim(workload const& w, std::string_view set, std::uint32_t count);

/// Its finalizer goes.
api_write release(workload const& w);

/// It is deleted. `uid` and version are those that were looked at.
api_write remove(workload const& w, std::string why);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_objects.ipp"
#endif
