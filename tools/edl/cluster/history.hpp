// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl history`: of a directory that this machine has, or of a job's, read in a pod with the job's volumes.
int print_history(words const& line);
std::vector<flag> history_flags();

}  // namespace edl::tool
