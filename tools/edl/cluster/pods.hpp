// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "edl/base/platform/platform.hpp"

namespace edl::tool {

/// Which process of `job` the pod of this name is; nothing when it is none of it.
std::optional<process_id> instance_of(std::string const& job, std::string const& pod);

/// For sorting a job's pods: master, servers, workers, by number.
std::tuple<int, std::uint64_t, std::string> order_of(nlohmann::json const& pod);

/// "master", "ps-0", "worker-3", by a pod's labels; its name when it has none.
std::string role_name(nlohmann::json const& pod);

/// The words that a pod's first container runs: its command and its arguments. Empty where it names none. Of
/// a pod's template, too.
std::vector<std::string> command_of(nlohmann::json const& pod);

/// Why a pod does not run, in the cluster's own words.
struct hindrance {
  std::string reason;     ///< "ErrImagePull", "Unschedulable", "OOMKilled", "CrashLoopBackOff", …
  std::string message;    ///< the cluster's; may be empty
  bool hopeless = false;  ///< time does not mend it
};

/// What a pod's status says, in one word as kubectl prints it, and what hinders it.
struct pod_state {
  std::string phase;   ///< "Pending", "Running", "Succeeded", "Failed"
  std::string status;  ///< "Running", "Terminating", "ImagePullBackOff", "OOMKilled", …
  bool ready = false, ended = false;
  bool restarting = false;  ///< its program has ended and is to be started again, at once or after a pause
  int restarts = 0;
  std::optional<int> exit_code;  ///< of its container, when it has ended
  std::optional<hindrance> hinders;
};
pod_state state_of(nlohmann::json const& pod);

/// What the job waits for, as its master's pod says in the annotation `elasticdl/waits`; empty: for nothing.
std::string waits_of(nlohmann::json const& master);

/// A job, as its pods tell.
struct job_summary {
  std::string name, space, image, status, progress, created;
  int workers = 0, workers_wanted = 0, servers = 0, servers_wanted = 0;  ///< running, and asked for
  std::string reason;                                                    ///< what hinders the master
  std::string waits;                                                     ///< for what, as the master says
  std::string kind;        ///< "TrainingJob"; empty: a plain job, which is its pods
  std::string report;      ///< of the master, for programs (`app::job_report`)
  std::string uid, range;  ///< of the TrainingJob that owns the pods: its uid; "1-8", the workers it may have
};

/// The uid of the TrainingJob that owns a pod; empty: it is of a plain job.
std::string training_job_of_pod(nlohmann::json const& pod);

/// Without the members of an older job of the same name, which may still be ending. `training_job`: the uid
/// of the job that is asked for; empty: it is a plain one, or there are several.
nlohmann::json own_pods(nlohmann::json const& pods, std::string const& training_job = "");

/// The jobs that these pods belong to, by namespace and name.
std::vector<job_summary> summarise(nlohmann::json const& pods);

/// Since the epoch, of "2026-11-20T10:39:00Z" with or without fractions; nothing for what is none.
std::optional<std::chrono::system_clock::time_point> parse_time(std::string const& text);

/// "33s", "5m3s", "2h5m", "3d4h": as kubectl writes ages.
std::string age(std::chrono::seconds elapsed);

}  // namespace edl::tool
