// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace edl::tool {

/// As YAML that means the same to readers of YAML 1.1 and 1.2. Ends with a newline.
std::string to_yaml(nlohmann::json const& value);

/// What becomes of a number of YAML whose usual spelling is another one, as that of 1.10, 0755 or 1e3.
enum class numbers { read, as_written };  ///< as_written: a text

/// What JSON or YAML says; of YAML the types of its core schema, and 0400 is 256, as for the cluster's tools.
/// `origin` (a flag, a file) stands in the errors. Throws usage_error: not readable, several documents,
/// nested deeper than 100.
nlohmann::json from_yaml(std::string const& text, std::string const& origin, numbers how = numbers::read);

/// The documents of such a text, at most 1000, without empty ones; the items of a `kind: List` each count as
/// one. Throws usage_error as `from_yaml` does.
std::vector<nlohmann::json> from_yaml_documents(std::string const& text, std::string const& origin);

}  // namespace edl::tool
