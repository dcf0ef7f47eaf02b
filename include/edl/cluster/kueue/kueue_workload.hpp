// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "edl/cluster/kubernetes/training_job.hpp"

/// The part of Kueue (kueue.x-k8s.io/v1beta2) that concerns TrainingJobs. Kueue decides about Workloads; the
/// controller creates one for each job that has a queue.
namespace edl::kueue {

inline constexpr std::string_view api_group = "kueue.x-k8s.io", api_version = "kueue.x-k8s.io/v1beta2";

/// Kueue's labels, annotations and finalizers.
inline constexpr char queue_label[] = "kueue.x-k8s.io/queue-name",
                      priority_label[] = "kueue.x-k8s.io/priority-class",
                      job_uid_label[] = "kueue.x-k8s.io/job-uid",
                      elastic_annotation[] = "kueue.x-k8s.io/elastic-job",
                      replaces_annotation[] = "kueue.x-k8s.io/workload-slice-replacement-for",
                      in_use_finalizer[] = "kueue.x-k8s.io/resource-in-use";

/// The names of a TrainingJob's pod sets.
inline constexpr char master_set[] = "master", servers_set[] = "servers", workers_set[] = "workers";

struct pod_set {
  std::string name;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> min_count{};  ///< in at most one set: Kueue may admit fewer, down to this
  kubernetes::template_text pods{};
};

/// The admitted part of a pod set.
struct assignment {
  std::optional<std::uint32_t> count{};
  std::set<std::string> flavors{};  ///< names of ResourceFlavors
};

/// What the pods of one pod set need in addition to their template to run where Kueue assigned them.
struct pod_changes {
  std::map<std::string, std::string> labels{}, annotations{}, node_selector{};
  std::vector<std::string> tolerations{};  ///< each a JSON object as text
  friend bool operator==(pod_changes const&, pod_changes const&) = default;
};

/// A Workload. Thread safety: as a value.
struct workload {
  std::string space, name, uid, resource_version;
  std::int64_t generation = 0;
  std::string owner;                  ///< uid of the TrainingJob that controls it
  std::string job;                    ///< its name
  std::string created;                ///< RFC 3339
  bool leaving = false;               ///< it is being deleted
  std::optional<std::size_t> held{};  ///< index of `in_use_finalizer` among its finalizers
  std::string replaces{};             ///< "namespace/name" of the slice that it is to replace

  std::string queue{}, priority_class{};
  std::optional<std::int64_t> priority{};
  bool active = true;
  std::vector<pod_set> pod_sets{};

  std::vector<kubernetes::condition> conditions{};
  std::optional<std::map<std::string, assignment>> admission{};  ///< by pod set
  std::string cluster_queue{};
  std::map<std::string, std::uint32_t> reclaimable{};         ///< pods that are no longer needed, by pod set
  std::map<std::string, std::vector<pod_changes>> updates{};  ///< from admission checks, by pod set

  kubernetes::condition const* find(std::string_view type) const;
  bool is(std::string_view type) const;
  bool finished() const { return is("Finished"); }
  bool reserved() const { return is("QuotaReserved"); }
  bool admitted() const { return reserved() && is("Admitted"); }
  bool evicted() const { return is("Evicted"); }
  pod_set const* set(std::string_view named) const;

  /// Pods of a set for which it has quota: those admitted less those reclaimed. 0: none.
  std::uint32_t granted(std::string_view named) const;
};

/// Reads a Workload. Returns nothing if no TrainingJob controls it. Treats a field that is absent, or that
/// has another type than the API promises, as empty. Thread safety: safe.
std::optional<workload> read_workload(nlohmann::json const& object);

/// Reads what a ResourceFlavor requires of pods: its node labels and tolerations.
pod_changes read_flavor(nlohmann::json const& object);

/// Adds `more` to `to`. Returns a key for which they differ; empty: none.
std::string merge(pod_changes& to, pod_changes const& more);

/// A template with the changes applied, or the key on which they conflict: "nodeSelector: disk".
struct changed_template {
  kubernetes::template_text text;
  std::string conflict{};
};
changed_template with_changes(kubernetes::template_text const& text, pod_changes const& changes);

/// Whether `read` contains everything in `sent`. A server adds defaults to what it receives.
bool covers(nlohmann::json const& read, nlohmann::json const& sent);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_workload.ipp"
#endif
