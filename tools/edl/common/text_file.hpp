// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace edl::tool {

/// The content of a file of at most 1 MiB; "-" is standard input. Throws usage_error that names `flag` and
/// why it cannot be read.
std::string read_small_file(std::string const& flag, std::string const& path);

/// Writes a text into the file that a flag names; "-" is standard output. `secret`: for the user's eyes only.
void write_output(std::string const& flag, std::string const& path, std::string const& text, bool secret);

}  // namespace edl::tool
