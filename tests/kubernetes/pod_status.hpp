// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// What a kubelet knows of a container.
struct container_facts {
  json spec;
  std::string id{};  ///< of the present or last run; empty: it never ran
  int restarts = 0;
  bool ready = false;
  bool done = false;  ///< ended, and not started again
  json state{{"waiting", {{"reason", "ContainerCreating"}}}}, last = json::object();

  bool runs() const { return state.contains("running"); }
};

/// The status that a kubelet writes: phase, conditions in the order and words of a real one, and the
/// containers'. `phase` empty: as the containers say. Conditions of others stay, before its own.
json pod_status(json const& pod, std::vector<container_facts const*> const& containers, bool sandbox,
                std::string const& ip, std::string const& phase);

}  // namespace edl::testing::kubernetes
