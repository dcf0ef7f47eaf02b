// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/cluster/kubernetes/training_job.hpp"

/// Gangs for Kubernetes' own scheduler: it places the pods of a PodGroup (scheduling.k8s.io) together or not
/// at all. Thread safety: safe.
namespace edl::kueue {

/// The version of PodGroup that a cluster serves.
struct pod_group_api {
  std::string version;         ///< "v1beta1"
  bool count_changes = false;  ///< whether a group's minCount is mutable
};

/// The supported versions, in order of preference.
inline constexpr char const* pod_group_versions[] = {"v1beta1", "v1alpha3", "v1alpha2"};
bool serves_pod_groups(nlohmann::json const& api_resources);
pod_group_api pod_group_api_called(std::string const& version);

/// The job's unique name for its group: "elasticdl-NAME-1f2e3d4c".
std::string pod_group_name(kubernetes::training_job const& job);

/// The number of the job's pods that must be placed at once: its servers and its minimum of workers. The
/// master does not count. It creates the other pods once it runs, so a gang that included it would wait
/// forever.
std::uint32_t gang_size(kubernetes::training_job const& job);

/// The PodGroup, owned by the job.
nlohmann::json pod_group(kubernetes::training_job const& job, pod_group_api const& api);

/// The template with its pods put into the job's group.
kubernetes::template_text in_pod_group(kubernetes::template_text const& pods,
                                       kubernetes::training_job const& job);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/podgroup.ipp"
#endif
