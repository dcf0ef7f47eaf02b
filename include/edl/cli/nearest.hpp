// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace edl::cli {

/// The known name that is closest to `name`; empty if none is close.
std::string nearest(std::string const& name, std::vector<std::string> const& known);

}  // namespace edl::cli

#ifdef EDL_HEADER_ONLY
#include "edl/cli/nearest.ipp"
#endif
