// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl doctor`.
int doctor(words const& line);
std::vector<flag> doctor_flags();

}  // namespace edl::tool
