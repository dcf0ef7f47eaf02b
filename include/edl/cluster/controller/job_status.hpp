// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "edl/cluster/controller/decision.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/training_job/training_job.hpp"

namespace edl::controller {

/// How many pods of each role there are, and should be. `master`: null where there is none.
void count_pods(training_job_status& to, training_job const& job,
                std::vector<pod_record const*> const& members, pod_record const* master);

/// Progress and speeds. Its times are of when something of it last changed.
void take_report(training_job_status& to, job_report const& report, double now);

/// Whether two differ in more than progress, speeds and words, which can wait to be told.
bool differs_in_substance(training_job_status const& a, training_job_status const& b);

/// What a person should hear of a change of the conditions.
std::vector<job_event> events_of(training_job_status const& before, training_job_status const& after);

}  // namespace edl::controller

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/controller/job_status.ipp"
#endif
