// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/base/platform/platform.hpp"

namespace edl::kubernetes {

/// `--cluster_spec`: what a cluster asks of a job's objects, as JSON:
///
///     {"pod_spec": {…}, "master_pod_spec": {…}, "ps_pod_spec": {…}, "worker_pod_spec": {…}, "service_spec":
///     {…}}
///
/// `pod_spec` is for all pods, and a role's own comes after it. In each:
/// - `labels`, `annotations`: added to the pod's;
/// - `tolerations`, `volumes`, `initContainers`, `imagePullSecrets`: appended, in the place of what has the
///   same name;
/// - `env`, `volumeMounts`: the same in every container, in the place of what has the same name, or mount
///   path;
/// - `securityContext` of the pod, and `container`, an object for every container: merged (RFC 7386: null
///   removes);
/// - other fields of a PodSpec that say where and how pods run (`affinity`, `nodeSelector`,
///   `topologySpreadConstraints`, `runtimeClassName`, `serviceAccountName`, …): replaced.
///
/// `service_spec` is merged into the Service's spec. An empty text asks for nothing.
///
/// Throws usage_error unless `text` is such an object with known keys and types. It must not change what
/// identifies a pod of the job (its labels, EDL_ROLE, MASTER_ADDR, …).
void check_cluster_spec(std::string const& text);

/// Changes a pod of role `of`. Requires a text that `check_cluster_spec` accepts.
void customise_pod(nlohmann::json& pod, std::string const& text, role of);

/// Changes the Service. Requires a text that `check_cluster_spec` accepts.
void customise_service(nlohmann::json& service, std::string const& text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/cluster_spec.ipp"
#endif
