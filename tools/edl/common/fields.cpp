// SPDX-License-Identifier: Apache-2.0
#include "common/fields.hpp"

#include <nlohmann/json.hpp>

namespace edl::tool {

using nlohmann::json;

std::string text_at(json const& object, std::string const& pointer, std::string const& otherwise) {
  json::json_pointer const at(pointer);
  if (!object.contains(at)) return otherwise;
  json const& v = object.at(at);
  return v.is_string() ? v.get<std::string>() : v.is_null() ? otherwise : v.dump();
}

}  // namespace edl::tool
