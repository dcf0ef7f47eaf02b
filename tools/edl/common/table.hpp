// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "edl/cli/flag.hpp"

namespace edl::tool {

/// Columns of equal width, three spaces apart, as kubectl prints them. `rows[0]` is the heading.
std::string to_table(std::vector<std::vector<std::string>> rows);

/// `value` as "json" or "yaml", with a newline at the end.
std::string to_text(nlohmann::json const& value, std::string const& format);

/// The flag that says how a command prints its answer, with the letter -o.
cli::flag output_flag(std::string name = "output");

}  // namespace edl::tool
