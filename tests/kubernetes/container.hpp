// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kubernetes/double.hpp"
#include "kubernetes/guard.hpp"
#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// A process to be.
struct command {
  std::string program;
  std::vector<std::string> arguments;  ///< the first is its name
  std::map<std::string, std::string> environment;
  std::string directory, log;
};

/// Why a container is not started: the state that says so.
struct cannot {
  std::string state;  ///< "waiting": it may become possible; "terminated": never
  std::string reason, message;
};

/// What a container is made from.
struct pod_context {
  store const& in;
  options const& with;
  json const& pod;
  std::string ip, directory;                                                           ///< the pod's own
  std::function<std::string(std::string const& space, json const& selector)> address;  ///< of a pod; or empty
};

/// The process that stands for a container: its image's program, its environment, and its volumes' paths and
/// services' names replaced. Makes the volumes' directories. Throws cannot.
command prepare(pod_context const& s, json const& container);

/// Starts it in a process group of its own that dies with the calling thread; 0 when there can be no more
/// processes. `with` ends what it has started.
pid_t spawn(command const& c, guard const& with);

/// SIGTERM, as the first process of a container gets it: not at all, unless it has a handler.
void ask_to_end(pid_t process);

/// Kills a process and what it has started.
void kill_all(pid_t process, int signal);

}  // namespace edl::testing::kubernetes
