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

#include "edl/cluster/training_job/training_job.hpp"

/// What Kueue (kueue.x-k8s.io/v1beta2) says of a TrainingJob. Kueue decides about a Workload, an object that
/// the job's controller writes for each job that has a queue.
namespace edl::kueue {

inline constexpr std::string_view api_group = "kueue.x-k8s.io", api_version = "kueue.x-k8s.io/v1beta2";

/// Names of its labels, annotations and finalizers.
inline constexpr char queue_label[] = "kueue.x-k8s.io/queue-name",
                      priority_label[] = "kueue.x-k8s.io/priority-class",
                      job_uid_label[] = "kueue.x-k8s.io/job-uid",
                      elastic_annotation[] = "kueue.x-k8s.io/elastic-job",
                      replaces_annotation[] = "kueue.x-k8s.io/workload-slice-replacement-for",
                      in_use_finalizer[] = "kueue.x-k8s.io/resource-in-use";

/// Names of a TrainingJob's pod sets.
inline constexpr char master_set[] = "master", servers_set[] = "servers", workers_set[] = "workers";

struct pod_set {
  std::string name;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> min_count{};  ///< of at most one of them: fewer may be admitted, down to it
  controller::template_text pods{};
};

/// What of a pod set was admitted.
struct assignment {
  std::optional<std::uint32_t> count{};
  std::set<std::string> flavors{};  ///< names of ResourceFlavors
};

/// What the pods of one pod set get besides their template, so that they run on what was assigned to them.
struct pod_changes {
  std::map<std::string, std::string> labels{}, annotations{}, node_selector{};
  std::vector<std::string> tolerations{};  ///< each a JSON object, as text
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
  std::optional<std::size_t> held{};  ///< place of `in_use_finalizer` among its finalizers, which holds it
  std::string replaces{};             ///< "namespace/name" of the slice that it shall take the place of

  std::string queue{}, priority_class{};
  std::optional<std::int64_t> priority{};
  bool active = true;
  std::vector<pod_set> pod_sets{};

  std::vector<controller::condition> conditions{};
  std::optional<std::map<std::string, assignment>> admission{};  ///< by pod set
  std::string cluster_queue{};
  std::map<std::string, std::uint32_t> reclaimable{};  ///< pods that are not needed any more, by pod set
  std::map<std::string, std::vector<pod_changes>> updates{};  ///< by admission checks, by pod set

  controller::condition const* find(std::string_view type) const;
  bool is(std::string_view type) const;
  bool finished() const { return is("Finished"); }
  bool reserved() const { return is("QuotaReserved"); }
  bool admitted() const { return reserved() && is("Admitted"); }
  bool evicted() const { return is("Evicted"); }
  pod_set const* set(std::string_view named) const;

  /// Pods of a set that it has quota for: what was admitted, less what was given back. 0: none.
  std::uint32_t granted(std::string_view named) const;
};

/// Nothing where no TrainingJob controls it. What is absent or of another type than the API promises is as if
/// empty. Thread safety: safe.
std::optional<workload> read_workload(nlohmann::json const& object);

/// What a ResourceFlavor's pods need: its node labels and tolerations.
pod_changes read_flavor(nlohmann::json const& object);

/// Adds `more` to `to`. Returns which key stands in both with different values; empty: none.
std::string merge(pod_changes& to, pod_changes const& more);

/// The template with the changes, or the key that it says otherwise of: "nodeSelector: disk".
struct changed_template {
  controller::template_text text;
  std::string conflict{};
};
changed_template with_changes(controller::template_text const& text, pod_changes const& changes);

/// Whether `read` says all that `sent` says. A server adds defaults to what it was sent.
bool covers(nlohmann::json const& read, nlohmann::json const& sent);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/kueue_workload.ipp"
#endif
