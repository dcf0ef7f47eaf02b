// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/overview.hpp"
#include "common/command_line.hpp"

namespace edl::tool {

/// `edl dashboard`: a page over a cluster's jobs, or over the runs below a directory of this machine, until
/// it is stopped.
int show_dashboard(words const& line);
std::vector<flag> dashboard_flags();

/// What the page is of, as the line says. Throws error for a directory that is none.
overview_options overview_of(command_line const& l);

}  // namespace edl::tool
