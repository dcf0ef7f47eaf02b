// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl export PROGRAM [flags]`: what the model's own program does by its command `export`, with its exit
/// code. The network is in the program, and nowhere else. Throws error where it ends well without a file.
std::vector<flag> export_flags();
int export_model(words const& line);

/// The command line that it runs, checked, with the program's path. Throws usage_error.
words export_line(words const& line);

}  // namespace edl::tool
