// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"

namespace edl::controller {

/// Counts the pods of each role, actual and desired. `master`: null if there is none.
void count_pods(kubernetes::training_job_status& to, kubernetes::training_job const& job,
                std::vector<pod_record const*> const& members, pod_record const* master);

/// Copies progress and speeds. The times are those of the last change.
void take_report(kubernetes::training_job_status& to, job_report const& report, double now);

/// Whether two differ in more than progress, speeds and messages; differences in those may be written later.
bool differs_in_substance(kubernetes::training_job_status const& a, kubernetes::training_job_status const& b);

/// The Events that announce a change of the conditions.
std::vector<job_event> events_of(kubernetes::training_job_status const& before,
                                 kubernetes::training_job_status const& after);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/job_status.ipp"
#endif
