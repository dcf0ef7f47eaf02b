// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "edl/cluster/kubernetes/training_job.hpp"
#include "edl/cluster/kueue/kueue_objects.hpp"

namespace edl::controller {

// The actions for a job, in order. Each is idempotent.

/// Replaces the job's status, unless the job has been recreated under the same name.
struct write_status {
  kubernetes::training_job_status status;
};
/// Creates whichever of the Secret, the Service and the master's pod are missing.
struct create_master {
  std::uint32_t attempt = 1, restart = 0, workers = 1;
  bool alone = true;   ///< no member exists yet
  std::string pool{};  ///< annotation::pool; empty: none
};
/// Sets annotations of the master's pod; removes those without a value.
struct annotate_master {
  std::string name, uid;
  std::map<std::string, std::optional<std::string>> notes;
};
/// `force`: does not wait for an unresponsive kubelet.
struct delete_pod {
  std::string name, uid;
  bool force = false;
};
/// Removes the controller's finalizer from this pod, whose end has been recorded.
struct release_pod {
  std::string name, uid;
};
struct delete_job {};
/// The job's gang is placed, so the scheduler may place further pods one by one.
struct open_gang {};
/// A request to Kueue that the job owes.
struct ask_kueue {
  kueue::api_write write;
};

using action = std::variant<write_status, create_master, annotate_master, delete_pod, release_pod, delete_job,
                            open_gang, ask_kueue>;

/// An Event of the job. It is sent after the status to which it refers has been written.
struct job_event {
  bool warning = false;
  std::string reason, message;
};

struct decision {
  std::vector<action> actions{};
  std::vector<job_event> events{};                      ///< sent after the status is written
  std::vector<job_event> notes{};                       ///< sent at once; they refer to no status
  std::map<std::string, kueue::pod_changes> changes{};  ///< to the templates of new pods, by pod set
  std::optional<double> again_at{};                     ///< reconcile then at the latest; seconds since 1970

  void look_again(double at) { again_at = again_at ? std::min(*again_at, at) : at; }
};

}  // namespace edl::controller
