// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/core/names.hpp"
#include "edl/job/config/foreign_flags.hpp"
#include "edl/job/config/resolve.hpp"
#include "text.hpp"

/// What a command line, which begins with the command's name, makes of a job.
inline edl::resolved resolved(std::vector<std::string> line) {
  auto const what = edl::value_of<edl::command>(line.at(0)).value();
  line.erase(line.begin());
  return edl::resolve(
      what,
      {{.command = "mnist", .flags = edl::flags_of(what, "mnist"), .why_unknown = edl::why_not_here}, line});
}

inline std::string refusal(std::vector<std::string> const& line) {
  return refusal([&] { resolved(line); });
}
