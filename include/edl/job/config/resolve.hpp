// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/job/config/flags.hpp"

namespace edl {

/// A job, and a line for each flag that was given and does nothing in it.
struct resolved {
  edl::job job;
  std::vector<std::string> notes;
};

/// What the flags mean for each other: how many processes a strategy has, which flag stands for another.
/// Throws usage_error for flags that contradict each other.
resolved resolve(command what, cli::command_line const& given);

/// Throws usage_error where --export_onnx is given and names no file, or one that is a model of edl's own
/// form.
void check_export_file(cli::command_line const& given);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/resolve.ipp"
#endif
