// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "edl/base/platform/platform.hpp"

namespace edl::kubernetes {

/// The relevant state of a pod, as the API server reports it, and of its first container, which runs the
/// program.
struct pod_status {
  enum class phase { pending, running, succeeded, failed, unknown };

  process_id who;
  std::uint32_t index = 0;  ///< of the worker that it replaces
  std::string name, uid, owner;
  std::string node = {};  ///< its node; empty: none yet
  std::string pool = {};  ///< annotation::pool
  phase at = phase::pending;
  bool others = false;       ///< it has further containers, which may outlive the program's
  bool restarts = false;     ///< its container is started again in place, by the restart policy of the pod or
                             ///< rules of its own
  bool terminating = false;  ///< it is being deleted
  std::string memory;        ///< its container's limit, as a quantity; empty: none

  std::string unplaced;              ///< the scheduler's message why no node fits
  std::string waiting, waiting_why;  ///< why its container does not run: reason, message
  std::string disruption;            ///< who evicts it, and why
  std::string reason, message;       ///< why it failed as a whole: "Evicted", …

  struct termination {
    int code = 0;
    std::string reason, message;
  };
  std::optional<termination> ended;  ///< set once the container has ended for good

  bool over() const { return at == phase::succeeded || at == phase::failed || (ended && !restarts); }
  bool lingers() const { return over() && others && at == phase::running; }
  bool out_of_memory() const { return ended && ended->reason == "OOMKilled"; }
};

/// Reads a Pod. Returns nothing if it is not a pod of a job. Treats a field that is absent, or that has
/// another type than the API promises, as empty.
std::optional<pod_status> read_pod(nlohmann::json const& pod);

/// The status of a pod's first container; null if there is none yet. Kubelets list the statuses by name.
nlohmann::json const& program_status(nlohmann::json const& pod);

/// How a pod that is over or gone has ended. Marks causes from outside (deleted, preempted, evicted, killed,
/// its node lost).
platform::ending ending_of(pod_status const& pod);

/// Describes why an existing pod does not run yet; empty: no known trouble.
std::string trouble(pod_status const& pod);

/// Whether waiting cannot help: the container's image or command is wrong.
bool hopeless(pod_status const& pod);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/pod_status.ipp"
#endif
