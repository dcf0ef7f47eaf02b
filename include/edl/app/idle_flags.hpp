// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/job.hpp"

namespace edl::app {

/// What a command line asks for, before one flag has settled another.
struct asked {
  edl::job const& job;                 ///< `how` and `what` are settled
  std::uint64_t records_per_task = 0;  ///< of the flag
};

/// A flag that does nothing in some jobs, and why.
struct idle_flag {
  std::string_view name;
  bool (*idle)(asked const&);
  std::string_view why;  ///< one clause, behind "--name does nothing here:"
};

/// All of them; a name stands there once for each reason.
std::vector<idle_flag> const& idle_flags();

/// One line for each flag that `given` says yes to and that does nothing in this job.
std::vector<std::string> idle_notes(asked const& a, std::function<bool(std::string_view)> const& given);

}  // namespace edl::app

#ifdef EDL_HEADER_ONLY
#include "edl/app/idle_flags.ipp"
#endif
