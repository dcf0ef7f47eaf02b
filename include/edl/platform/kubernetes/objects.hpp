// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/platform/kubernetes/job_spec.hpp"

namespace edl::platform::kubernetes {

/// Ports that the roles listen on in their pods.
inline constexpr std::uint16_t master_port = 50001, server_port = 2222, worker_port = 3333;

/// The object that owns others: they are deleted with it.
struct owner {
  std::string name, uid;  ///< of a pod
};

/// "elasticdl-NAME-master.SPACE.svc:50001": where the master is, whatever pod it is in.
std::string master_address(job_spec const& spec);

/// The master's pod. Nobody owns it; its end is the job's. A master that is killed is started again in place.
nlohmann::json master_pod(job_spec const& spec);

/// A server's or worker's pod, owned by the master's. `index`: of the worker whose place it takes, which decides
/// on its priority (label elasticdl-original-index). `request` and `limit` may be more than the spec's. Its
/// environment says all that its process must know: EDL_ROLE, EDL_PORT, MASTER_ADDR, …
nlohmann::json member_pod(job_spec const& spec, instance const& who, std::uint32_t index, resources const& request,
                          resources const& limit, owner const& by);

/// What gives the master its stable address.
nlohmann::json master_service(job_spec const& spec);

/// The job's secret, "elasticdl-NAME", key "token".
nlohmann::json token_secret(job_spec const& spec, std::string const& token);

/// The merge patch that makes `by` the owner of an object.
nlohmann::json owned_by(owner const& by);

}  // namespace edl::platform::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/platform/kubernetes/objects.ipp"
#endif
