// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl simulate`: what a cluster's autoscaler would make of a workload.
int simulate(words const& line);
std::vector<flag> simulate_flags();

}  // namespace edl::tool
