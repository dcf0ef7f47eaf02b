// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// The resource and what its controller needs, in the order in which they are made. They are as the files of
/// k8s/ were when the tool was built. `space` and `image` take the place of theirs where they are given.
std::vector<nlohmann::json> controller_objects(std::string const& space, std::string const& image);

/// Where the controller runs, as its manifest says, and the lease by which one of its replicas leads.
struct controller_place {
  std::string space = "edl-system", name = "edl-controller", lease = "edl-controller";
};
controller_place place_of_controller();

/// `edl controller install`.
int install_controller(words const& line);
std::vector<flag> install_controller_flags();

}  // namespace edl::tool
