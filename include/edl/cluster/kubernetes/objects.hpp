// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/kubernetes/job_spec.hpp"

namespace edl::kubernetes {

/// The objects of a job for the API server. Each needs a spec that `check` accepts, and has no null and no
/// empty field. All have the labels `app=elasticdl`, `elasticdl-job-name` and the older `elasticdl_job_name`;
/// pods also `elasticdl-replica-type` (master, ps, worker) in both spellings and `elasticdl-replica-index`.
/// Containers run as an unprivileged user, on a read-only root file system.

/// Ports that the roles listen on in their pods.
inline constexpr std::uint16_t master_port = 50001, server_port = 2222, worker_port = 3333;

/// The labels of all pods of a role, besides those of its template.
std::map<std::string, std::string> member_labels(std::string const& job, role what);

/// "elasticdl-NAME-master.SPACE.svc:50001": the master's address, for any pod.
std::string master_address(job_spec const& spec);

/// The path of the master's journal in its pod: on a volume that lives as long as the pod.
inline constexpr char journal_file[] = "/var/run/edl/master.json";

/// The master's pod. It has no owner, unless the spec names one; when it ends, the job ends.
///
/// A killed master is restarted in place, by rules that API servers support since 1.35; older ones refuse the
/// pod (422). With `restart_rules` false it is for older ones, where only --restart_policy=OnFailure restarts
/// it.
nlohmann::json master_pod(job_spec const& spec, bool restart_rules = true);

/// The same, from a PodTemplateSpec that `check_pod_template` accepts. The caller adds annotations for the
/// controller's own use.
nlohmann::json master_pod(job_spec const& spec, nlohmann::json const& like, bool restart_rules = true);

/// A server's or worker's pod, owned by the spec's owner or, if it names none, by `by`, the master's pod. It
/// uses the role's template if the spec has one. `index`: of the worker that it replaces, which determines
/// its priority (label elasticdl-original-index). `request` and `limit` may exceed the spec's. Its
/// environment has all settings of its process: EDL_ROLE, EDL_PORT, MASTER_ADDR, …
nlohmann::json member_pod(job_spec const& spec, process_id const& who, std::uint32_t index,
                          resources const& request, resources const& limit, owner const& by);

/// Excludes these nodes for a pod, in addition to its other constraints.
void avoid_nodes(nlohmann::json& pod, std::vector<std::string> const& nodes);

/// Makes the pod require the node labels of `pool` (annotation::pool), besides its own. Empty: no effect.
/// Throws error if `pool` is not a JSON object.
void put_in_pool(nlohmann::json& pod, std::string const& pool);

/// The headless Service that gives the master its stable address; it has the name of the master's pod.
nlohmann::json master_service(job_spec const& spec);

/// The name of the job's secret: from the spec, or "elasticdl-NAME".
std::string secret_name(job_spec const& spec);

/// The name of a TrainingJob's secret: "elasticdl-NAME-" and the first 8 characters of its uid. A new job
/// with the same name has another one, so its owner is known without reading it.
std::string secret_name(owner const& by);

/// The job's secret, key "token".
nlohmann::json token_secret(job_spec const& spec, std::string const& token);

/// The merge patch that makes `by` the owner of an object.
nlohmann::json owned_by(owner const& by);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/objects.ipp"
#endif
