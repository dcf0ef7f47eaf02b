// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace edl::tool {

/// The objects that a file's text holds; nothing when it holds flags. Throws usage_error, which names
/// `origin`.
std::optional<std::vector<nlohmann::json>> objects_in(std::string const& text, std::string const& origin);

/// A command line whose --file holds flags, as one without: those of `text`, which is the file's, stand
/// beside those of the line, which win. A file may be a pipe, and is read once. Throws usage_error.
words with_flags_of(std::string const& command, std::vector<flag> const& known, words const& line,
                    std::string const& text);

}  // namespace edl::tool
