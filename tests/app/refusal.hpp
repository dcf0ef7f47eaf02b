// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/app/arguments.hpp"
#include "text.hpp"

/// What is said of a command line that is refused, or "accepted".
inline std::string refusal(std::vector<std::string> const& line) {
  return refusal([&] { edl::app::parse("mnist", line); });
}
