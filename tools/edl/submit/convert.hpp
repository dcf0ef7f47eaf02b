// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl convert`.
int convert_job(words const& line);
std::vector<flag> convert_job_flags();

}  // namespace edl::tool
