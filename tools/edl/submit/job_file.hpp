// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// The objects that a file's text holds; nothing when it holds flags. Throws usage_error, which names
/// `origin`.
std::optional<std::vector<nlohmann::json>> objects_in(std::string const& text, std::string const& origin);

/// A command line whose --file holds flags, as one without: those of `text`, which is the file's, stand
/// beside those of the line, which win. A file may be a pipe, and is read once. Throws usage_error.
words with_flags_of(std::string const& command, std::vector<flag> const& known, words const& line,
                    std::string const& text);

/// A command line whose -f may name a YAML or JSON file with more of the flags, as `name: value`; what the
/// line gives wins. Lists and maps are joined as the flags' texts are: {cpu: 1, memory: 1Gi}. Throws
/// usage_error, which says `why_unknown` of a flag that the command does not have.
command_line read_with_file(std::string const& command, std::vector<flag> const& known, words line,
                            reason_of_flag const& why_unknown = {});

/// What a command line says beside the files that it names (--file, --output_file), as words.
words beside_file(command_line const& given);

}  // namespace edl::tool
