// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace edl::tool {

/// The field of an object that a JSON pointer names, as text; `otherwise` where it, or something on the way,
/// is missing.
std::string text_at(nlohmann::json const& object, std::string const& pointer,
                    std::string const& otherwise = "");

}  // namespace edl::tool
