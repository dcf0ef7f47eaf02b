// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl zoo init | build | push`, without the first two words; returns the exit code. `init` makes files in
/// the folder `here` and says on `out` which. `build` and `push` run the container engine that `engine`
/// names, whose output is this process's. Throws usage_error, and error where a file cannot be written or
/// the engine does not do its work.
int zoo(words const& line, std::filesystem::path const& here, std::string const& engine, std::ostream& out);

/// The same in this process's folder, with the engine that EDL_DOCKER names, or docker, and on standard
/// output.
int zoo(words const& line);

/// The flags of `edl zoo COMMAND`; none for another word than init, build and push.
std::vector<flag> zoo_flags(std::string const& command);

}  // namespace edl::tool
