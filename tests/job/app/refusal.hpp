// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/job/app/arguments.hpp"

/// What is said of a command line that is refused, or "accepted".
inline std::string refusal(std::vector<std::string> const& line) {
  try {
    edl::app::parse("mnist", line);
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "accepted";
}

inline bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}
