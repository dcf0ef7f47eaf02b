// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace edl::testing::kubernetes {

/// A YAML value as kubectl turns it into JSON, for manifests as people write them.
inline nlohmann::json to_json(YAML::Node const& n) {
  using nlohmann::json;
  if (n.IsSequence()) {
    json list = json::array();
    for (YAML::Node const& one : n) list.push_back(to_json(one));
    return list;
  }
  if (n.IsMap()) {
    json object = json::object();
    for (auto const& one : n)
      if (!object.emplace(one.first.Scalar(), to_json(one.second)).second)
        throw std::runtime_error("'" + one.first.Scalar() + "' stands there twice");
    return object;
  }
  if (!n.IsScalar()) return nullptr;
  std::string const& text = n.Scalar();
  if (n.Tag() == "!") return text;  // in quotes
  if (text == "true" || text == "false") return text == "true";
  std::int64_t number = 0;
  auto const [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad == std::errc{} && end == text.data() + text.size()) return number;
  if (text.find('.') != text.npos && text.find_first_not_of("0123456789.") == text.npos)
    if (double fraction = 0; YAML::convert<double>::decode(n, fraction)) return fraction;
  return text;
}

/// Every document of a file.
inline std::vector<nlohmann::json> read_yaml(std::string const& path) {
  std::vector<nlohmann::json> all;
  for (YAML::Node const& one : YAML::LoadAllFromFile(path)) all.push_back(to_json(one));
  return all;
}

}  // namespace edl::testing::kubernetes
