// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// k8s/serve.yaml, a Deployment and a Service, with what the flags say in the place of its own.
std::vector<nlohmann::json> serve_objects(command_line const& l);

/// `edl serve`: prints them.
int serve(words const& line);
std::vector<flag> serve_flags();

}  // namespace edl::tool
