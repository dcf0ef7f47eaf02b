// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/training_job/training_job.hpp"

namespace edl::controller {

/// The service account of masters whose template names none.
inline constexpr char usual_account[] = "edl";

/// What a cluster has to know of a TrainingJob that starts with so many workers. Throws usage_error, which
/// names the field, when no objects can be made from it.
kubernetes::job_spec spec_of(training_job const& job, std::uint32_t workers);

/// The job with templates that say what `changes` say, by pod set. Throws usage_error where they contradict.
training_job placed(training_job job, std::map<std::string, kueue::pod_changes> const& changes);

/// The master's pod. It is held by a finalizer until its end is recorded. Otherwise it may be collected
/// earlier, and a job that has finished would begin again.
nlohmann::json master_of(training_job const& job, create_master const& how, bool restart_rules);

/// An Event of a TrainingJob. `id`: makes its name unique.
nlohmann::json event_of(training_job const& job, job_event const& what, double now, std::string const& id);

/// "/apis/elasticdl.org/v1alpha1/namespaces/team/trainingjobs/mnist".
std::string path_of(training_job const& job);

/// "/api/v1/namespaces/SPACE/PLURAL/NAME"; without a name: of them all.
std::string core_path(std::string const& space, std::string const& plural, std::string const& name = "");

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/job_objects.ipp"
#endif
