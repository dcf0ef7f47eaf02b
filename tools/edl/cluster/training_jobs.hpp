// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "cluster/pods.hpp"
#include "edl/cluster/kubernetes/training_job.hpp"
#include "edl/core/clock.hpp"

namespace edl::tool {

/// A TrainingJob of a cluster.
struct live_job {
  edl::kubernetes::training_job resource;
  std::string fault;    ///< why its fields cannot be read; `is` has its name, its namespace and its uid only
  std::string reach{};  ///< as `cluster::reach`
};

/// "/apis/elasticdl.org/v1alpha1/namespaces/SPACE/trainingjobs" and below; of all namespaces where it is
/// empty.
std::string training_jobs_path(std::string const& space, std::string const& name = "");

/// Whether the cluster has the resource.
bool knows_training_jobs(cluster& c);

/// Nothing: there is none of that name, the cluster does not know TrainingJobs, or they may not be looked at.
std::optional<live_job> find_training_job(cluster& c, std::string const& name);

/// The same, of a cluster that is asked again until `until` where it does not answer. It throws error that
/// says which job is gone when it is.
live_job training_job_again(cluster& c, std::string const& name, time_point until);

struct live_jobs {
  std::vector<live_job> list;
  std::string missing;  ///< why there are none, where they may not be looked at
};
live_jobs list_training_jobs(cluster& c, bool everywhere);

/// Changes some fields of it (RFC 7386). Throws api_error, whose text has the cluster's own words.
live_job change_training_job(cluster& c, std::string const& name, nlohmann::json const& change);

/// Throws error, or what it was, for what a request about TrainingJobs was answered with: a cluster that does
/// not know them needs `edl controller install`.
[[noreturn]] void explain_refusal(cluster const& c, kubernetes::api_error const& bad);

/// "Pending", "Starting", "Running", "Scaling", "Suspended", "Finished", "Failed", "Terminating".
std::string status_of(edl::kubernetes::training_job const& job);

/// Why it does not run, or does not go on: "Stalled: …", "waits for room: …"; empty: nothing hinders it.
std::string hindrance_of(live_job const& of);

/// "1024 of 60000 records, epoch 1 of 2, 930 records/s, ends 2026-11-22T10:00:00Z"; empty: not known.
std::string progress_of(edl::kubernetes::training_job const& job);

/// As a row of a table; `pods`: what its pods tell, null where there are none.
job_summary summary_of(live_job const& job, job_summary const* pods);

/// TrainingJobs and plain jobs together, by namespace and name.
std::vector<job_summary> all_jobs(std::vector<live_job> const& training_jobs,
                                  std::vector<job_summary> of_pods);

/// The pod of a job's master. Throws what `no_such_job` returns.
nlohmann::json master_of(cluster& c, std::string const& job);

/// What is said of a job that is not there: names the job, the namespace and a similar job's name.
error no_such_job(cluster& c, std::string const& job);

}  // namespace edl::tool
