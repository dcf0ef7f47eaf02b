// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "command_line.hpp"
#include "edl/platform/kubernetes/client.hpp"
#include "edl/platform/kubernetes/job_spec.hpp"

namespace edl::tool {

/// `edl train`, `evaluate` and `predict`.
int submit(std::string const& command, words const& line);

/// The objects of a job in the order in which they are made: secret, service, master's pod.
nlohmann::json objects_of(platform::kubernetes::job_spec const& spec, std::string const& token,
                          bool restart_rules = true);

/// Makes the objects of a job; what was made is removed when the rest cannot be. Returns the master's pod.
/// `note` is told what had to be done differently. `try_only`: the server checks them and makes nothing.
/// Throws api_error, unreachable.
nlohmann::json create_job(platform::kubernetes::client& api, platform::kubernetes::job_spec const& spec,
                          std::string const& token, std::function<void(std::string const&)> const& note,
                          bool try_only = false);

}  // namespace edl::tool
