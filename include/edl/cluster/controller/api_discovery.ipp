// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "edl/cluster/controller/api_discovery.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/kueue.hpp"
#include "edl/cluster/kueue/podgroup.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {

EDL_INLINE std::optional<kubernetes::server_version> server_of(kubernetes::client& api, logger const& log) {
  using namespace kubernetes;
  try {
    auto const v = ask_version(api);
    if (v && *v < oldest_server)
      log.warning(fmt::format("this cluster has Kubernetes {}.{}; TrainingJobs need {}.{} or later", v->major,
                              v->minor, oldest_server.major, oldest_server.minor));
    return v;
  } catch (error const& e) {
    log.debug(fmt::format("the API server's version is not known: {}", e.what()));
    return std::nullopt;
  }
}

EDL_INLINE std::optional<bool> serves_kueue(kubernetes::client& api, logger const& log) {
  using kubernetes::field;
  try {
    auto const answer = api.get(fmt::format("/apis/{}", kueue::api_version));
    auto const& all = field(answer, {"resources"});
    return all.is_array() && std::any_of(all.begin(), all.end(), [](auto const& one) {
             return kubernetes::text(field(one, {"name"})) == "workloads";
           });
  } catch (kubernetes::api_error const& e) {
    if (e.code() == 404) return false;
    log.warning(fmt::format("whether the cluster has Kueue is not known: {}; asking again", e.what()));
  } catch (error const& e) {
    log.debug(fmt::format("whether the cluster has Kueue is not known: {}; asking again", e.what()));
  }
  return std::nullopt;
}

EDL_INLINE std::string pod_group_version(kubernetes::client& api, logger const& log) {
  for (char const* version : kueue::pod_group_versions) {
    try {
      if (kueue::serves_pod_groups(api.get(fmt::format("/apis/scheduling.k8s.io/{}", version))))
        return version;
    } catch (kubernetes::api_error const& e) {
      if (e.code() != 404) log.warning(fmt::format("PodGroups: {}", e.what()));
    } catch (error const& e) {
      log.warning(fmt::format("PodGroups: {}", e.what()));
    }
  }
  log.warning("--pod_groups: the cluster serves no PodGroup of scheduling.k8s.io; jobs start without");
  return {};
}

}  // namespace edl::controller
