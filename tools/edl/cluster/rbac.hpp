// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// A kind of objects and what is done to them.
struct permission {
  std::string group, resource;  ///< "", "pods/log"
  words verbs;
};

/// The least that a job's master needs, and the least that somebody needs who submits and follows jobs.
std::vector<permission> const& master_permissions();
std::vector<permission> const& user_permissions();

/// What they need besides, for TrainingJobs.
std::vector<permission> const& training_job_permissions();

/// What `edl doctor` needs besides, to tell what the account of masters may do.
std::vector<permission> const& examiner_permissions();

/// The objects that let masters run as `account` in `space` (empty: in whichever namespace they are applied
/// to): what k8s/rbac.yaml says. `users`: also a role for people who submit jobs.
nlohmann::json rbac_objects(std::string const& space, std::string const& account, bool users = false);

/// `edl rbac`.
int rbac(words const& line);
std::vector<flag> rbac_flags();

}  // namespace edl::tool
