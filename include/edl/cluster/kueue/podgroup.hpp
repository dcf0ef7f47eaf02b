// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/cluster/training_job/training_job.hpp"

/// Gangs for Kubernetes' own scheduler: a PodGroup (scheduling.k8s.io), whose pods are placed together or not
/// at all. Thread safety: safe.
namespace edl::kueue {

/// Which version of PodGroup a cluster serves.
struct pod_group_api {
  std::string version;         ///< "v1beta1"
  bool count_changes = false;  ///< minCount of a group can be changed
};

/// By what the server says at /apis/scheduling.k8s.io/VERSION, in this order of preference.
inline constexpr char const* pod_group_versions[] = {"v1beta1", "v1alpha3", "v1alpha2"};
bool serves_pod_groups(nlohmann::json const& api_resources);
pod_group_api pod_group_api_called(std::string const& version);

/// "elasticdl-NAME-1f2e3d4c", which nobody else's has.
std::string pod_group_name(controller::training_job const& job);

/// How many pods of the job must be placed at once: its servers and its least number of workers. The master
/// is none of them. It makes the others when it runs, so a group with it would wait for pods that nobody
/// makes.
std::uint32_t gang_size(controller::training_job const& job);

/// The PodGroup, owned by the job.
nlohmann::json pod_group(controller::training_job const& job, pod_group_api const& api);

/// The template with pods in the job's group.
controller::template_text in_pod_group(controller::template_text const& pods,
                                       controller::training_job const& job);

}  // namespace edl::kueue

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kueue/podgroup.ipp"
#endif
