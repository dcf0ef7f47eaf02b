// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/kubernetes/job_spec.hpp"

namespace edl::kubernetes {

/// The objects of a job, as they are sent to the API server. Each needs a spec that `check` takes, and has no
/// null and no empty field. All bear the labels `app=elasticdl`, `elasticdl-job-name` and the older
/// `elasticdl_job_name`; pods besides `elasticdl-replica-type` (master, ps, worker) in both spellings and
/// `elasticdl-replica-index`. Containers run as a user without rights, on a root file system that they cannot
/// write to.

/// Ports that the roles listen on in their pods.
inline constexpr std::uint16_t master_port = 50001, server_port = 2222, worker_port = 3333;

/// The labels of all pods of a role, beside those of its template.
std::map<std::string, std::string> member_labels(std::string const& job, role what);

/// "elasticdl-NAME-master.SPACE.svc:50001": where the master is, whatever pod it is in.
std::string master_address(job_spec const& spec);

/// Where the master's journal is in its pod: on a volume that lives as long as the pod.
inline constexpr char journal_file[] = "/var/run/edl/master.json";

/// The master's pod. Nobody owns it, unless the spec names an owner; its end is the job's.
///
/// A master that is killed is started again in place, by rules that servers know since 1.35; those before
/// them refuse such a pod (422). `restart_rules` false makes one for them, where only
/// --restart_policy=OnFailure starts it again.
nlohmann::json master_pod(job_spec const& spec, bool restart_rules = true);

/// The same, made by a PodTemplateSpec that `check_pod_template` takes. Annotations for the controller's own
/// use are the caller's to add.
nlohmann::json master_pod(job_spec const& spec, nlohmann::json const& like, bool restart_rules = true);

/// A server's or worker's pod, owned by the spec's owner or, where it names none, by `by`, the master's pod.
/// It is made by the role's template where the spec has one. `index`: of the worker whose place it takes,
/// which decides on its priority (label elasticdl-original-index). `request` and `limit` may be more than the
/// spec's. Its environment says all that its process must know: EDL_ROLE, EDL_PORT, MASTER_ADDR, …
nlohmann::json member_pod(job_spec const& spec, process_id const& who, std::uint32_t index,
                          resources const& request, resources const& limit, owner const& by);

/// Adds to a pod that it is on none of these nodes, whatever else is said of its place.
void avoid_nodes(nlohmann::json& pod, std::vector<std::string> const& nodes);

/// What gives the master its stable address: a headless Service, whose name is that of the master's pod.
nlohmann::json master_service(job_spec const& spec);

/// The name of the job's secret: as the spec says, or "elasticdl-NAME".
std::string secret_name(job_spec const& spec);

/// Of a TrainingJob's secret: "elasticdl-NAME-" and the first 8 characters of its uid. A job of that name
/// that is made anew has another, so nobody needs to read it to know whose it is.
std::string secret_name(owner const& by);

/// The job's secret, key "token".
nlohmann::json token_secret(job_spec const& spec, std::string const& token);

/// The merge patch that makes `by` the owner of an object.
nlohmann::json owned_by(owner const& by);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/objects.ipp"
#endif
