// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "edl/cluster/kueue/kueue_objects.hpp"
#include "edl/cluster/training_job/training_job.hpp"

namespace edl::controller {

// What is to be done for a job, in order. Each can be repeated without harm.

/// The status takes the place of the one that is there, if the job is still the one that was looked at.
struct write_status {
  training_job_status status;
};
/// Secret, Service and the master's pod, those that are missing.
struct create_master {
  std::uint32_t attempt = 1, restart = 0, workers = 1;
  bool alone = true;  ///< no member is there yet
};
/// Annotations of the master's pod; without a value: removed.
struct annotate_master {
  std::string name, uid;
  std::map<std::string, std::optional<std::string>> notes;
};
/// `force`: without waiting for a kubelet that is not heard any more.
struct delete_pod {
  std::string name, uid;
  bool force = false;
};
/// The end of this pod is recorded: its object may go, if nobody else holds it.
struct release_pod {
  std::string name, uid;
};
struct delete_job {};
/// The job's gang is placed, so the scheduler may place its pods one by one from now on.
struct open_gang {};
/// What is owed to Kueue.
struct ask_kueue {
  kueue::api_write write;
};

using action = std::variant<write_status, create_master, annotate_master, delete_pod, release_pod, delete_job,
                            open_gang, ask_kueue>;

/// An Event of the job, told after the status that it speaks of has been written.
struct job_event {
  bool warning = false;
  std::string reason, message;
};

struct decision {
  std::vector<action> actions{};
  std::vector<job_event> events{};  ///< told once the status is written
  std::vector<job_event> notes{};   ///< told at once, and of no status
  std::map<std::string, kueue::pod_changes>
      changes{};                     ///< of the templates of pods that are made, by pod set
  std::optional<double> again_at{};  ///< look again then, even if nothing happens; seconds since 1970

  void look_again(double at) { again_at = again_at ? std::min(*again_at, at) : at; }
};

}  // namespace edl::controller
