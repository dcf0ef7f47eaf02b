// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/job/config/flags.hpp"

namespace edl {

/// A flag without effect in some jobs, and the reason.
struct idle_flag {
  std::string_view name;
  bool (*idle)(parsed_flags const&);
  std::string_view why;  ///< one clause, after "--name does nothing here:"
};

/// All of them; a name occurs once for each reason.
std::vector<idle_flag> const& idle_flags();

/// One line for each flag that is given with a value other than its default and has no effect in this job,
/// whose strategy is already determined.
std::vector<std::string> idle_notes(parsed_flags const& a, cli::command_line const& given);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/idle_flags.ipp"
#endif
