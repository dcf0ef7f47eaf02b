// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace refusals {

using nlohmann::json;

inline std::string status(int code, std::string const& reason, std::string const& message) {
  return json{
      {"kind", "Status"}, {"status", "Failure"}, {"reason", reason}, {"message", message}, {"code", code}}
      .dump();
}

json const pod{{"kind", "Pod"}, {"metadata", {{"name", "x"}}}};

}  // namespace refusals
