// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace edl::testing::kubernetes {

/// The folder of recorded answers and schemas of a real API server; nothing where a machine does not have it.
inline std::optional<std::filesystem::path> recordings() {
  char const* const data = std::getenv("EDL_TEST_DATA");
  std::filesystem::path const folder = std::filesystem::path(data ? data : "../shared/data") / ".." / "k8s";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no recorded API server at " << folder.string() << " (set EDL_TEST_DATA)");
    return std::nullopt;
  }
  return folder;
}

/// What an API server publishes about the objects that it takes (OpenAPI v3), as far as its documents use the
/// language. A property that it does not know is an error, as with `kubectl apply --validate=strict`.
class schema {
 public:
  using json = nlohmann::json;

  /// Every document of a folder.
  explicit schema(std::filesystem::path const& folder) {
    for (auto const& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path());
      documents_.push_back(json::parse(in)["components"]["schemas"]);
    }
  }

  /// Adds the schemas of one more document.
  void add(json schemas) { documents_.push_back(std::move(schemas)); }

  /// Whether the kind of `object` is published.
  bool knows(json const& object) const { return find(object).second; }

  /// What is wrong with `object`: "Pod.spec.containers[0].imagePolicy: is unknown".
  std::vector<std::string> errors(json const& object) const {
    std::vector<std::string> out;
    auto const [document, found] = find(object);
    if (!found) return {object.value("apiVersion", "") + " " + object.value("kind", "") + ": no such kind"};
    check(*document, *found, object, object.value("kind", ""), out);
    return out;
  }

 private:
  std::pair<json const*, json const*> find(json const& object) const {
    std::string const version = object.value("apiVersion", "");
    auto const slash = version.find('/');
    json const wanted{{"group", slash == std::string::npos ? "" : version.substr(0, slash)},
                      {"version", version.substr(slash + 1)},
                      {"kind", object.value("kind", "")}};
    for (json const& document : documents_)
      for (auto const& [name, one] : document.items())
        if (auto const kinds = one.find("x-kubernetes-group-version-kind");
            kinds != one.end() && kinds->size() == 1 && (*kinds)[0] == wanted)
          return {&document, &one};
    return {nullptr, nullptr};
  }

  static bool is(std::string const& type, json const& v) {
    return type == "object"    ? v.is_object()
           : type == "array"   ? v.is_array()
           : type == "string"  ? v.is_string()
           : type == "boolean" ? v.is_boolean()
           : type == "integer" ? v.is_number_integer()
           : type == "number"  ? v.is_number()
                               : false;
  }

  static void check(json const& document, json const& s, json const& v, std::string const& at,
                    std::vector<std::string>& out) {
    if (auto const ref = s.find("$ref"); ref != s.end()) {
      std::string const name = ref->get<std::string>();
      return check(document, document.at(name.substr(name.rfind('/') + 1)), v, at, out);
    }
    for (json const& part : s.value("allOf", json::array())) check(document, part, v, at, out);
    if (auto const any = s.find("oneOf"); any != s.end()) {
      bool good = false;
      for (json const& one : *any) {
        std::vector<std::string> wrong;
        check(document, one, v, at, wrong);
        good |= wrong.empty();
      }
      if (!good) out.push_back(at + ": is of none of the types that it may have");
    }
    if (auto const type = s.find("type"); type != s.end() && !is(*type, v))
      return out.push_back(at + ": is no " + type->get<std::string>() + " but " + v.dump());
    if (v.is_number_integer() && s.value("format", "") == "int32" &&
        std::int32_t(v.get<std::int64_t>()) != v.get<std::int64_t>())
      out.push_back(at + ": " + v.dump() + " needs more than 32 bits");
    if (v.is_array() && s.contains("items"))
      for (std::size_t i = 0; i < v.size(); ++i)
        check(document, s["items"], v[i], at + "[" + std::to_string(i) + "]", out);
    if (!v.is_object()) return;
    for (json const& name : s.value("required", json::array()))
      if (!v.contains(name.get<std::string>()))
        out.push_back(at + "." + name.get<std::string>() + ": is missing");
    auto const known = s.find("properties"), others = s.find("additionalProperties");
    for (auto const& [name, value] : v.items())
      if (known != s.end() && known->contains(name))
        check(document, (*known)[name], value, at + "." + name, out);
      else if (others != s.end() && others->is_object())
        check(document, *others, value, at + "." + name, out);
      else if (known != s.end() && !s.value("x-kubernetes-preserve-unknown-fields", false))
        out.push_back(at + "." + name + ": is unknown");
  }

  std::vector<json> documents_;
};

/// Where `object` has nulls or fields without content, which a server drops in silence. An emptyDir may be
/// empty.
inline std::vector<std::string> empty_fields(nlohmann::json const& v, std::string const& at = "") {
  if (v.is_null() || (v.is_string() && v == "") || (v.is_structured() && v.empty())) return {at};
  std::vector<std::string> out;
  if (v.is_structured())
    for (auto const& [name, value] : v.items()) {
      if (name == "emptyDir" || (name == "value" && value == "")) continue;
      auto const more = empty_fields(value, at + "/" + name);
      out.insert(out.end(), more.begin(), more.end());
    }
  return out;
}

}  // namespace edl::testing::kubernetes
