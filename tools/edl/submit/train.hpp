// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl train`, `evaluate` and `predict`.
int submit(std::string const& command, words const& line);

}  // namespace edl::tool
