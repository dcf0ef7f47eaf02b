// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "edl/cli/command_line.hpp"
#include "edl/job/config/flags.hpp"

namespace edl {

/// A job, and a line for each given flag without effect in it.
struct resolved {
  edl::job job;
  std::vector<std::string> notes;
};

/// Resolves flags that depend on each other: the number of processes of a strategy, flags that replace
/// others. Throws usage_error for flags that contradict each other.
resolved resolve(command what, cli::command_line const& given);

/// Throws usage_error if --export_onnx is given but names no file, or a model file of edl's own format.
void check_export_file(cli::command_line const& given);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/config/resolve.ipp"
#endif
