// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::controller {

/// The service account of a master whose template names none.
inline constexpr char usual_account[] = "edl";

/// The cluster's description of a TrainingJob that starts with `workers` workers. Throws usage_error, which
/// names the field, when no objects can be made from it.
kubernetes::job_spec spec_of(kubernetes::training_job const& job, std::uint32_t workers);

/// The job with `changes`, by pod set, merged into its templates. Throws usage_error on a contradiction.
kubernetes::training_job placed(kubernetes::training_job job,
                                std::map<std::string, kueue::pod_changes> const& changes);

/// The master's pod, with a finalizer that holds it until the controller has recorded its end. Without it the
/// pod might be garbage collected earlier, and a finished job would start again.
nlohmann::json master_of(kubernetes::training_job const& job, create_master const& how, bool restart_rules);

/// An Event of a TrainingJob. `id` makes its name unique.
nlohmann::json event_of(kubernetes::training_job const& job, job_event const& what, double now,
                        std::string const& id);

/// "/apis/elasticdl.org/v1alpha1/namespaces/team/trainingjobs/mnist".
std::string path_of(kubernetes::training_job const& job);

/// "/api/v1/namespaces/SPACE/PLURAL/NAME"; without a name, the path of the collection.
std::string core_path(std::string const& space, std::string const& plural, std::string const& name = "");

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/job_objects.ipp"
#endif
