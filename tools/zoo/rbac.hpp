// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace edl::tool {

/// A kind of objects and what is done to them.
struct permission {
  std::string group, resource;  ///< "", "pods/log"
  words verbs;
};

/// The least that a job's master needs, and the least that somebody needs who submits and follows jobs.
std::vector<permission> const& master_permissions();
std::vector<permission> const& user_permissions();

/// The objects that allow it in `space` to a service account's pods.
nlohmann::json rbac_objects(std::string const& space, std::string const& service_account);

/// `edl rbac`.
int rbac(words const& line);
std::vector<flag> rbac_flags();

}  // namespace edl::tool
