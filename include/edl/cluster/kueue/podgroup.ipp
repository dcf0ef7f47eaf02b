// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/podgroup.hpp"
#include "edl/core/inline.hpp"

namespace edl::kueue {

EDL_INLINE bool serves_pod_groups(nlohmann::json const& api_resources) {
  using namespace kubernetes;
  auto const& all = field(api_resources, {"resources"});
  if (all.is_array())
    for (auto const& one : all)
      if (text(field(one, {"name"})) == "podgroups") return true;
  return false;
}

EDL_INLINE pod_group_api pod_group_api_called(std::string const& version) {
  return {version, version != "v1alpha2"};
}

EDL_INLINE std::string pod_group_name(kubernetes::training_job const& job) {
  return fmt::format("elasticdl-{}-{}", job.name, job.uid.substr(0, 8));
}

EDL_INLINE std::uint32_t gang_size(kubernetes::training_job const& job) {
  return job.spec.servers + job.spec.workers.min;
}

EDL_INLINE nlohmann::json pod_group(kubernetes::training_job const& job, pod_group_api const& api) {
  nlohmann::json object{{"apiVersion", "scheduling.k8s.io/" + api.version},
                        {"kind", "PodGroup"},
                        {"metadata", {{"name", pod_group_name(job)}, {"namespace", job.space}}}};
  object["metadata"]["ownerReferences"].push_back({{"apiVersion", kubernetes::api_version},
                                                   {"kind", kubernetes::training_job_kind},
                                                   {"name", job.name},
                                                   {"uid", job.uid},
                                                   {"controller", true}});
  object["spec"]["schedulingPolicy"]["gang"]["minCount"] = gang_size(job);
  return object;
}

EDL_INLINE kubernetes::template_text in_pod_group(kubernetes::template_text const& pods,
                                                  kubernetes::training_job const& job) {
  if (pods.empty()) return pods;
  auto t = nlohmann::json::parse(pods);
  t["spec"]["schedulingGroup"]["podGroupName"] = pod_group_name(job);
  return t.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace edl::kueue
