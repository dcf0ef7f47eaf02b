// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.hpp"

namespace edl::tool {

/// Removes all objects of a job; whether there was any.
bool delete_job(cluster& c, std::string const& job);

/// `edl delete`.
int remove(words const& line);
std::vector<flag> remove_flags();

/// `edl scale`.
int scale(words const& line);
std::vector<flag> scale_flags();

/// `edl suspend` and `edl resume`: a TrainingJob has no pods for a while, and goes on from its checkpoint.
int suspend(words const& line);
int resume(words const& line);
std::vector<flag> suspend_flags();
std::vector<flag> resume_flags();

}  // namespace edl::tool
