// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// Which of `names` match one of `patterns`. Patterns are those of POSIX `fnmatch` without flags, separated
/// by ',': `*` matches any characters, including `/`. Throws error for a pattern that matches none, with
/// similar names; the message begins with `what`, followed by "'PATTERN' matches no `kind`".
std::vector<bool> matching_names(std::vector<std::string> const& names, std::string_view patterns,
                                 std::string const& what, std::string_view kind);

/// Whether one of `patterns` matches a name.
bool matches_name(std::string_view patterns, std::string const& name);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/compute/optim/name_patterns.ipp"
#endif
