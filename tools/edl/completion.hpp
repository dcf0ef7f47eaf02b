// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// What may stand in place of the last word of `line`, which is what follows `edl`. `jobs` is asked for the
/// names of jobs where one may stand. Empty: nothing is known, such as a file's name.
words complete(words const& line, std::function<words()> const& jobs);

/// `edl completion`.
int completion(words const& line);
std::vector<flag> completion_flags();

/// `edl __complete`, which the shells' scripts call: prints what `complete` returns, a line each. Never
/// fails.
int print_completions(words const& line);

}  // namespace edl::tool
