// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl get jobs`.
int get(words const& line);
std::vector<flag> get_flags();

/// `edl describe`.
int describe_job(words const& line);
std::vector<flag> describe_flags();

}  // namespace edl::tool
