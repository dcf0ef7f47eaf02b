// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/advice.hpp"
#include "common/command_line.hpp"
#include "common/fields.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/clock.hpp"

namespace edl::tool {

/// An API server and the namespace that a command is about.
struct cluster {
  kubernetes::client api;
  std::string space;
  std::string usual_space;  ///< of who names none; empty: the reader has named one
  std::string reach;        ///< flags by which the reader reached it, as " --context=test"

  /// "/api/v1/namespaces/SPACE/pods" and below.
  std::string path(std::string const& kind, std::string const& name = "") const;

  /// What a command that a hint names needs, to be about the same: " -n team --context=test".
  std::string flags() const;
  std::string named(std::string const& job) const { return job + flags(); }
  std::string reach_of_kubectl() const { return for_kubectl(reach); }

  /// The pods of a job, by name: master, servers, workers by number. Empty when there is none.
  nlohmann::json pods_of(std::string const& job);
};

/// What a command that talks to a cluster knows: --namespace, --context, --kubeconfig, …
std::vector<flag> cluster_flags();

/// As the flags of `cluster_flags()` say. Throws usage_error: no cluster is known, or the file is wrong.
cluster connect(command_line const& line);

/// The account of masters where no other is asked for. It is the one that `edl rbac` makes, where the
/// namespace has it or does not let us look, otherwise "default".
struct account {
  std::string name;
  bool seen = true;  ///< it was looked at
};
account default_account(cluster& c);

/// The account to name in a job that leaves it open; empty: the namespace's own. Says so where it could not
/// look.
std::string usual_account(cluster& c);

/// Who waits does not give up because an API server is away for a moment, which is told once: whether `ask`
/// was answered. Throws what `ask` throws otherwise, and that as well when it is past `until`.
bool answered(std::function<void()> const& ask, time_point until, bool& announced);

/// As `cluster::reach`. Asks no server.
std::string reach_of(command_line const& line);

/// The namespace that `connect` would choose; "default" where no cluster is known. Asks no server.
std::string namespace_of(command_line const& line);

}  // namespace edl::tool
