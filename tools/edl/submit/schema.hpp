// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace edl::tool {

/// Holds a value against a structural schema, as an API server does that is asked to be strict about unknown
/// fields. It checks types, required fields, bounds, enumerations and patterns. `x-kubernetes-validations`
/// are not looked at. `origin` and the field's path stand in the error. Throws usage_error for the first
/// thing that is wrong.
void check_schema(nlohmann::json const& schema, nlohmann::json const& value, std::string const& origin,
                  std::string const& path = "");

}  // namespace edl::tool
