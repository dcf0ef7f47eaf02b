// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.hpp"

namespace edl::tool {

/// A flag of other versions or systems that says nothing here.
struct gone_flag {
  cli::flag flag;
  std::string why;  ///< one line: "--feed: <why>"
};

/// Flags of `train`, `evaluate` and `predict` that mean nothing any more.
std::vector<gone_flag> gone_flags();

/// Flags of these commands that are the tool's or the cluster's: image, pods, volumes, waiting.
std::vector<flag> job_flags();

/// Flags of `command` that the model's program has, by its own parser: names and defaults.
std::vector<flag> model_flags(std::string const& command);

/// All of them, as `command` reads them.
std::vector<flag> submission_flags(std::string const& command);

}  // namespace edl::tool
