// SPDX-License-Identifier: Apache-2.0
#include "submit/schema.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "common/command_line.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

/// One walk through a value.
class walk {
 public:
  explicit walk(std::string const& origin) : origin_(origin) {}

  void value(json const& schema, json const& v, std::string const& path) const {
    if (schema.value("x-kubernetes-int-or-string", false)) {
      if (!v.is_string() && !v.is_number_integer()) refuse(path, v, "expected a string or a whole number");
    } else if (schema.contains("type")) {
      type(schema.at("type").get<std::string>(), v, path);
    }
    if (auto const list = schema.find("enum"); list != schema.end()) one_of(*list, v, path);
    if (v.is_string()) text(schema, v, path);
    if (v.is_number()) number(schema, v, path);
    if (v.is_array()) {
      count(schema, v, path, "Items", "items");
      if (auto const items = schema.find("items"); items != schema.end())
        for (std::size_t i = 0; i < v.size(); ++i) value(*items, v[i], fmt::format("{}[{}]", path, i));
    }
    if (v.is_object()) {
      count(schema, v, path, "Properties", "fields");
      fields(schema, v, path);
    }
  }

 private:
  [[noreturn]] void refuse(std::string const& path, json const& v, std::string const& expected) const {
    std::string shown = v.is_primitive() ? v.dump(-1, ' ', false, json::error_handler_t::replace) : "";
    if (shown.size() > 64) shown = shortened(shown, 61) + "…";
    throw usage_error(
        fmt::format("{}: {}{}{}: {}", origin_, path, shown.empty() ? "" : ": ", shown, expected));
  }

  void type(std::string const& t, json const& v, std::string const& path) const {
    bool const good = t == "object"    ? v.is_object()
                      : t == "array"   ? v.is_array()
                      : t == "string"  ? v.is_string()
                      : t == "integer" ? v.is_number_integer()
                      : t == "number"  ? v.is_number()
                      : t == "boolean" ? v.is_boolean()
                                       : true;
    if (good) return;
    refuse(path, v,
           t == "object"    ? "expected an object"
           : t == "array"   ? "expected a list"
           : t == "string"  ? "expected a string; put it into quotes"
           : t == "boolean" ? "expected true or false"
                            : "expected a number");
  }

  void one_of(json const& list, json const& v, std::string const& path) const {
    words all;
    for (json const& one : list) {
      if (one == v) return;
      all.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
    std::string names;
    for (std::string const& one : all) names += (names.empty() ? "" : ", ") + one;
    std::string const near = v.is_string() ? cli::nearest(v.get<std::string>(), all) : "";
    refuse(path, v,
           fmt::format("expected one of {}{}", names, near.empty() ? "" : "; did you mean " + near + "?"));
  }

  void text(json const& schema, json const& v, std::string const& path) const {
    auto const& t = v.get_ref<std::string const&>();
    std::size_t characters = 0;
    for (char const c : t) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (characters < schema.value("minLength", std::size_t{0}))
      refuse(path, v, fmt::format("expected at least {} characters", schema.at("minLength").dump()));
    if (auto const most = schema.find("maxLength");
        most != schema.end() && characters > most->get<std::size_t>())
      refuse(path, v, fmt::format("has {} characters, and may have {}", characters, most->dump()));
    // Matching recurses, a level for each character.
    if (auto const p = schema.find("pattern"); p != schema.end() && t.size() <= 4096)
      if (!std::regex_search(t, std::regex(p->get<std::string>())))
        refuse(path, v, fmt::format("expected a match of {}", p->get<std::string>()));
  }

  void number(json const& schema, json const& v, std::string const& path) const {
    if (auto const least = schema.find("minimum"); least != schema.end() && v < *least)
      refuse(path, v, fmt::format("expected {} or more", least->dump()));
    if (auto const most = schema.find("maximum"); most != schema.end() && v > *most)
      refuse(path, v, fmt::format("expected {} or less", most->dump()));
  }

  void count(json const& schema, json const& v, std::string const& path, std::string const& what,
             std::string const& things) const {
    if (auto const least = schema.find("min" + what);
        least != schema.end() && v.size() < least->get<std::size_t>())
      refuse(path, v, fmt::format("has {} {}, expected {} or more", v.size(), things, least->dump()));
    if (auto const most = schema.find("max" + what);
        most != schema.end() && v.size() > most->get<std::size_t>())
      refuse(path, v, fmt::format("has {} {}, expected {} or less", v.size(), things, most->dump()));
  }

  void fields(json const& schema, json const& v, std::string const& path) const {
    auto const at = [&](std::string const& name) { return path.empty() ? name : path + "." + name; };
    json const known = schema.value("properties", json::object());
    auto const others = schema.find("additionalProperties");
    for (auto const& [name, field] : v.items()) {
      if (auto const it = known.find(name); it != known.end()) {
        if (field.is_null() && !it->value("nullable", false)) continue;  // the server drops it
        value(*it, field, at(name));
      } else if (others != schema.end() && others->is_object()) {
        value(*others, field, at(name));
      } else if (!schema.value("x-kubernetes-preserve-unknown-fields", false) && !known.empty()) {
        words names;
        for (auto const& [k, unused] : known.items()) names.push_back(k);
        std::string const near = cli::nearest(name, names);
        throw usage_error(fmt::format("{}: {}: no such field{}", origin_, at(name),
                                      near.empty() ? "" : "; did you mean " + near + "?"));
      }
    }
    for (json const& name : schema.value("required", json::array()))
      if (auto const it = v.find(name.get<std::string>()); it == v.end() || it->is_null())
        throw usage_error(fmt::format("{}: {}: is missing", origin_, at(name.get<std::string>())));
  }

  std::string const& origin_;
};

}  // namespace

void check_schema(json const& schema, json const& value, std::string const& origin, std::string const& path) {
  walk(origin).value(schema, value, path);
}

}  // namespace edl::tool
