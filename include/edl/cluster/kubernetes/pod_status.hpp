// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/base/platform/platform.hpp"

namespace edl::kubernetes {

/// What matters of a pod, as the API server tells it, and of its first container: the program's.
struct pod_status {
  enum class phase { pending, running, succeeded, failed, unknown };

  process_id who;
  std::uint32_t index = 0;  ///< of the worker whose place it has
  std::string name, uid, owner;
  std::string node = {};  ///< where it is; empty: it has none yet
  phase at = phase::pending;
  bool others = false;       ///< it has further containers, which may outlive the program's
  bool restarts = false;     ///< its container is started again in place, by the restart policy of the pod or
                             ///< rules of its own
  bool terminating = false;  ///< it has been told to leave
  std::string memory;        ///< its container's limit, as a quantity; empty: none

  std::string unplaced;              ///< why no node takes it: the scheduler's words
  std::string waiting, waiting_why;  ///< why its container does not run: reason, message
  std::string disruption;            ///< why it is taken away: by whom and for what
  std::string reason, message;       ///< why it failed as a whole: "Evicted", …

  struct termination {
    int code = 0;
    std::string reason, message;
  };
  std::optional<termination> ended;  ///< its container has, and is not started again

  bool over() const { return at == phase::succeeded || at == phase::failed || (ended && !restarts); }
  bool lingers() const { return over() && others && at == phase::running; }
  bool out_of_memory() const { return ended && ended->reason == "OOMKilled"; }
};

/// Nothing: no pod of a job of ours. What is absent or of another type than the API promises is as if empty.
std::optional<pod_status> read_pod(nlohmann::json const& pod);

/// The status of a pod's first container; null when there is none yet. Kubelets list them by name.
nlohmann::json const& program_status(nlohmann::json const& pod);

/// The ending of a pod that is over, or that is gone. What came from outside (deleted, preempted, evicted,
/// killed, its node lost) is told so.
platform::ending ending_of(pod_status const& pod);

/// Why a pod that has been created does not run yet, in words; empty: nothing is known to be wrong.
std::string trouble(pod_status const& pod);

/// Time does not mend it: the container's image or command is wrong.
bool hopeless(pod_status const& pod);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/pod_status.ipp"
#endif
