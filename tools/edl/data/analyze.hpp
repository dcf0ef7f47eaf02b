// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl data analyze`: the statistics of each feature of some records, for people and for models
/// (`edl/compute/features/statistics.hpp`).
int analyze(words const& line);
std::vector<flag> analyze_flags();

}  // namespace edl::tool
