// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl audit`: of a directory that this machine has, or of a job's, read in a pod with the job's volumes.
int audit(words const& line);
std::vector<flag> audit_flags();

struct pod_answer {
  bool succeeded = false;
  std::string text;  ///< that it printed
};

/// What the job's own program says of its --checkpoint_dir, in a pod with the job's volumes: `before` and
/// `behind` are the words around the directory. The line has the flags of `audit_flags`, and the job as its
/// argument.
pod_answer ask_pod(command_line const& l, words const& before, words const& behind);

/// The pod that audits `directory` in the place of a job's master: its image, its volumes, for a bucket its
/// environment and service account, and nothing that may be done to the cluster. Throws error when the
/// master's pod has no command.
nlohmann::json audit_pod(nlohmann::json const& master, std::string const& job, std::string const& directory);

/// The --checkpoint_dir of a master's command; empty when there is none.
std::string checkpoint_dir_of(nlohmann::json const& master);

}  // namespace edl::tool
