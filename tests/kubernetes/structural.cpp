// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/structural.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <regex>
#include <set>

#include "kubernetes/cel.hpp"

namespace edl::testing::kubernetes {
namespace {

// What is compiled from a text, once. A lock for all of them is enough: the store has one, too.
template <class T, class Make>
T const& compiled(std::string const& text, Make const& make) {
  static std::mutex mutex;
  static std::map<std::string, T> all;
  std::lock_guard const held(mutex);
  auto const it = all.find(text);
  return it != all.end() ? it->second : all.emplace(text, make(text)).first->second;
}

std::regex const& pattern_of(std::string const& text) {
  return compiled<std::regex>(text, [](std::string const& t) { return std::regex(t); });
}

cel::expression const& rule_of(std::string const& text) {
  return compiled<cel::expression>(text, cel::parse);
}

bool has_rules(json const& schema) {
  if (!schema.is_structured()) return false;
  if (schema.is_object() && schema.contains("x-kubernetes-validations")) return true;
  return std::ranges::any_of(schema, has_rules);
}

bool is_set(json const& schema, char const* mark) { return schema.value(mark, false); }
bool is_either(json const& schema) { return is_set(schema, "x-kubernetes-int-or-string"); }
bool keeps(json const& schema) { return is_set(schema, "x-kubernetes-preserve-unknown-fields"); }

std::string join(std::string const& field, std::string const& name) {
  return field.empty() ? name : field + "." + name;
}

json const& part(json const& schema, char const* name) {
  static json const none = json::object();
  auto const it = schema.find(name);
  return it == schema.end() || it->is_null() ? none : *it;
}

// The schema of a member; null: it is unknown.
json const* member(json const& schema, std::string const& name) {
  if (json const& known = part(schema, "properties"); known.contains(name)) return &known[name];
  json const& others = part(schema, "additionalProperties");
  return others.empty() ? nullptr : &others;
}

bool is_known_by_root(std::string const& name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

void prune(json const& schema, json& o, std::string const& field, bool root, std::vector<std::string>& gone) {
  if (o.is_array() && schema.contains("items"))
    for (std::size_t i = 0; i < o.size(); ++i)
      prune(schema["items"], o[i], fmt::format("{}[{}]", field, i), false, gone);
  if (!o.is_object()) return;
  for (auto it = o.begin(); it != o.end();) {
    json const* const known = member(schema, it.key());
    if (root && is_known_by_root(it.key())) {
      ++it;
    } else if (known) {
      prune(*known, it.value(), join(field, it.key()), false, gone);
      ++it;
    } else if (keeps(schema)) {
      ++it;
    } else {
      gone.push_back(join(field, it.key()));
      it = o.erase(it);
    }
  }
}

cause wrong_type(std::string const& field, json const& value, std::string const& wanted) {
  std::string const is = value.is_number_integer() ? "integer" : value.type_name();
  return {"FieldValueTypeInvalid", field,
          fmt::format("Invalid value: \"{0}\": {1} in body must be of type {2}: \"{0}\"", is, field, wanted)};
}

cause too_many(std::string const& field, std::size_t is, std::size_t most) {
  return {"FieldValueTooMany", field, fmt::format("Too many: {}: must have at most {} items", is, most)};
}

bool fits(std::string const& type, json const& v) {
  return type.empty() || (type == "object" && v.is_object()) || (type == "array" && v.is_array()) ||
         (type == "string" && v.is_string()) || (type == "boolean" && v.is_boolean()) ||
         (type == "integer" && v.is_number_integer()) || (type == "number" && v.is_number());
}

void check_text(json const& schema, std::string const& text, std::string const& field,
                std::vector<cause>& out) {
  auto const characters = std::size_t(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
  if (schema.contains("maxLength") && characters > schema["maxLength"])
    out.push_back({"FieldValueTooLong", field,
                   fmt::format("Too long: may not be more than {} bytes", schema["maxLength"].dump())});
  if (schema.contains("minLength") && characters < schema["minLength"])
    out.push_back(invalid_value(
        field, text,
        fmt::format("{} in body should be at least {} chars long", field, schema["minLength"].dump())));
  if (schema.contains("pattern") && !std::regex_search(text, pattern_of(schema["pattern"])))
    out.push_back(invalid_value(
        field, text,
        fmt::format("{} in body should match '{}'", field, schema["pattern"].get<std::string>())));
  static std::regex const moment(
      R"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2}))");
  if (schema.value("format", "") == "date-time" && !std::regex_match(text, moment))
    out.push_back({"FieldValueTypeInvalid", field,
                   fmt::format("Invalid value: {0}: {1} in body must be of type date-time: {0}",
                               json(text).dump(), field)});
}

void check(json const& schema, json const& v, std::string const& field, std::vector<cause>& out) {
  if (v.is_null() && is_set(schema, "nullable")) return;
  if (is_either(schema) && !v.is_string() && !v.is_number_integer())
    return out.push_back(wrong_type(field, v, "integer,string"));
  if (!fits(schema.value("type", ""), v)) return out.push_back(wrong_type(field, v, schema["type"]));
  if (schema.contains("enum") && std::ranges::find(schema["enum"], v) == schema["enum"].end()) {
    std::string all;
    for (json const& one : schema["enum"]) all += (all.empty() ? "" : ", ") + one.dump();
    out.push_back({"FieldValueNotSupported", field,
                   fmt::format("Unsupported value: {}: supported values: {}", v.dump(), all)});
  }
  if (v.is_number() && schema.contains("minimum") && v < schema["minimum"])
    out.push_back(invalid_value(
        field, v,
        fmt::format("{} in body should be greater than or equal to {}", field, schema["minimum"].dump())));
  if (v.is_number() && schema.contains("maximum") && v > schema["maximum"])
    out.push_back(invalid_value(
        field, v,
        fmt::format("{} in body should be less than or equal to {}", field, schema["maximum"].dump())));
  if (v.is_string()) check_text(schema, v, field, out);
  if (v.is_array()) {
    if (schema.contains("maxItems") && v.size() > schema["maxItems"])
      out.push_back(too_many(field, v.size(), schema["maxItems"]));
    if (schema.contains("minItems") && v.size() < schema["minItems"])
      out.push_back(invalid_value(
          field, v.size(),
          fmt::format("{} in body should have at least {} items", field, schema["minItems"].dump())));
    for (std::size_t i = 0; i < v.size(); ++i)
      check(schema["items"], v[i], fmt::format("{}[{}]", field, i), out);
  }
  if (!v.is_object()) return;
  if (schema.contains("maxProperties") && v.size() > schema["maxProperties"])
    out.push_back(too_many(field, v.size(), schema["maxProperties"]));
  for (auto const& [name, value] : v.items())
    if (json const* const known = member(schema, name)) check(*known, value, join(field, name), out);
  for (json const& name : schema.value("required", json::array()))
    if (!v.contains(name.get<std::string>()))
      out.push_back({"FieldValueRequired", join(field, name), "Required value"});
}

// An element of a list that is a map or a set, as far as others may not be like it.
json key_of(json const& schema, json const& element) {
  if (schema.value("x-kubernetes-list-type", "") == "set") return element;
  json key = json::object();
  for (json const& name : schema.value("x-kubernetes-list-map-keys", json::array()))
    if (element.is_object() && element.contains(name.get<std::string>()))
      key[name.get<std::string>()] = element[name.get<std::string>()];
  return key;
}

void check_lists(json const& schema, json const& v, std::string const& field, std::vector<cause>& out) {
  if (v.is_array()) {
    std::string const how = schema.value("x-kubernetes-list-type", "");
    std::set<json> seen;
    for (std::size_t i = 0; i < v.size(); ++i) {
      std::string const at = fmt::format("{}[{}]", field, i);
      if (json const key = key_of(schema, v[i]); (how == "map" || how == "set") && !seen.insert(key).second)
        out.push_back({"FieldValueDuplicate", at, "Duplicate value: " + key.dump()});
      check_lists(schema["items"], v[i], at, out);
    }
  }
  if (v.is_object())
    for (auto const& [name, value] : v.items())
      if (json const* const known = member(schema, name)) check_lists(*known, value, join(field, name), out);
}

void ask_rules(json const& schema, json const& v, json const* before, std::string const& field,
               std::vector<cause>& out) {
  for (json const& one : schema.value("x-kubernetes-validations", json::array())) {
    auto const& rule = rule_of(one.at("rule"));
    if (cel::uses_old_self(rule) && !before) continue;
    std::string said = one.value("message", "failed rule: " + one["rule"].get<std::string>());
    try {
      if (cel::holds(rule, v, before)) continue;
    } catch (cel::error const& e) {
      said = fmt::format("rule evaluation error: {}", e.what());
    }
    std::string const path = field + one.value("fieldPath", ""),
                      reason = one.value("reason", "FieldValueInvalid");
    std::string const type = schema.value("type", "");
    out.push_back({reason, path.starts_with('.') ? path.substr(1) : path,
                   reason == "FieldValueRequired"    ? "Required value: " + said
                   : reason == "FieldValueForbidden" ? "Forbidden: " + said
                   : reason == "FieldValueDuplicate" ? fmt::format("Duplicate value: \"{}\"", type)
                                                     : fmt::format("Invalid value: \"{}\": {}", type, said)});
  }
  if (v.is_array()) {
    bool const keyed = schema.value("x-kubernetes-list-type", "") == "map";
    for (std::size_t i = 0; i < v.size(); ++i) {
      json const* old = nullptr;
      if (keyed && before && before->is_array())
        for (json const& o : *before)
          if (key_of(schema, o) == key_of(schema, v[i])) old = &o;
      ask_rules(schema["items"], v[i], old, fmt::format("{}[{}]", field, i), out);
    }
  }
  if (v.is_object())
    for (auto const& [name, value] : v.items())
      if (json const* const known = member(schema, name))
        ask_rules(*known, value, before && before->contains(name) ? &before->at(name) : nullptr,
                  join(field, name), out);
}

/// Walks through a schema and says what is wrong with it.
class inspection {
 public:
  std::vector<cause> wrongs{};

  // `correlated`: an element of it can be told from others in a later version; `more`: how many there may be.
  void look_at(json const& s, std::string const& field, bool root, bool correlated, double more) {
    std::string const type = s.value("type", "");
    if (type.empty() && !is_either(s) && !keeps(s))
      missing(field + ".type", "must not be empty for specified");
    if (is_either(s) && !type.empty()) forbid(field + ".type", "x-kubernetes-int-or-string has no type");
    if (root && type != "object") forbid(field + ".type", "must be object at the root");
    for (char const* never :
         {"$ref", "definitions", "dependencies", "id", "patternProperties", "additionalItems"})
      if (s.contains(never)) forbid(field + "." + never, "is not allowed");
    if (is_set(s, "uniqueItems")) forbid(field + ".uniqueItems", "uniqueItems cannot be set to true");
    if (keeps(s) && !type.empty() && type != "object")
      forbid(field + ".x-kubernetes-preserve-unknown-fields", "must be false if type is not object");
    bool const has_members = s.contains("properties"), is_map = s.contains("additionalProperties");
    if (has_members && is_map) forbid(field + ".additionalProperties", "and properties exclude each other");
    if (is_map && !s["additionalProperties"].is_object())
      forbid(field + ".additionalProperties", "has to be a schema");
    if ((has_members || is_map) && type != "object") forbid(field + ".properties", "is of objects alone");
    if ((type == "array") != s.contains("items")) missing(field + ".items", "belongs to an array");
    for (json const& name : s.value("required", json::array()))
      if (has_members && !s["properties"].contains(name.get<std::string>()))
        forbid(field + ".required", "names " + name.dump() + ", which is no property");
    junctors(s, field);
    list_marks(s, field, type);
    if (s.contains("default")) defaults(s, field);
    rules(s, field, correlated, more);
    if (has_members)
      for (auto const& [name, one] : s["properties"].items()) {
        std::string const at = fmt::format("{}.properties[{}]", field, name);
        if (root && name == "metadata" && one != json{{"type", "object"}}) {
          forbid(at,
                 "must not specify anything other than name and generateName, but metadata is implicitly "
                 "specified");
          continue;
        }
        if (root && is_known_by_root(name) && one.contains("default"))
          forbid(at + ".default", "must not be set");
        look_at(one, at, false, correlated, more);
      }
    if (is_map && s["additionalProperties"].is_object())
      look_at(s["additionalProperties"], field + ".additionalProperties", false, correlated,
              more * cel::longest(s));
    if (s.contains("items"))
      look_at(s["items"], field + ".items", false,
              correlated && s.value("x-kubernetes-list-type", "") == "map",
              more * s.value("maxItems", double(3 << 20)));
  }

  void end(std::string const& field) {
    if (total_ > most_definition_cost)
      forbid(field,
             fmt::format("contributed to estimated rule cost total exceeding cost limit by factor of {:.1f}x",
                         total_ / most_definition_cost));
  }

  std::vector<rule_cost> costs{};

 private:
  void forbid(std::string const& field, std::string const& why) {
    wrongs.push_back({"FieldValueForbidden", field, "Forbidden: " + why});
  }
  void missing(std::string const& field, std::string const& why) {
    wrongs.push_back({"FieldValueRequired", field, "Required value: " + why});
  }

  // Below allOf and the like no field is specified, only restricted.
  void junctors(json const& s, std::string const& field) {
    for (char const* name : {"allOf", "anyOf", "oneOf", "not"}) {
      if (!s.contains(name)) continue;
      json const list = s[name].is_array() ? s[name] : json::array({s[name]});
      bool const either = is_either(s) && std::string(name) == "anyOf" &&
                          list == json{{{"type", "integer"}}, {{"type", "string"}}};
      if (either) continue;
      for (json const& one : list)
        for (auto const& [key, value] : one.items())
          if (key == "type" || key == "default" || key == "description" || key == "nullable" ||
              key == "additionalProperties" || key.starts_with("x-kubernetes-"))
            forbid(fmt::format("{}.{}.{}", field, name, key), "must be empty to be structural");
    }
  }

  void list_marks(json const& s, std::string const& field, std::string const& type) {
    std::string const how = s.value("x-kubernetes-list-type", "");
    json const keys = s.value("x-kubernetes-list-map-keys", json::array());
    if (!how.empty() && type != "array") forbid(field + ".x-kubernetes-list-type", "is of arrays alone");
    if (!how.empty() && how != "atomic" && how != "set" && how != "map")
      forbid(field + ".x-kubernetes-list-type", "must be atomic, set or map");
    if (keys.empty() == (how == "map")) forbid(field + ".x-kubernetes-list-map-keys", "belong to a map");
    if (how != "map" || !s.contains("items")) return;
    json const& each = s["items"];
    if (each.value("type", "") != "object") forbid(field + ".items.type", "must be object in a map");
    json const needed = each.value("required", json::array());
    for (json const& key : keys) {
      json const* const one = part(each, "properties").contains(key.get<std::string>())
                                  ? &each["properties"][key.get<std::string>()]
                                  : nullptr;
      if (!one)
        forbid(field + ".x-kubernetes-list-map-keys", "name " + key.dump() + ", which is no property");
      else if (one->value("type", "") == "array" || one->value("type", "") == "object")
        forbid(field + ".items", key.dump() + " must be of a scalar type");
      else if (std::ranges::find(needed, key) == needed.end() && !one->contains("default"))
        missing(field + ".items", key.dump() + " has to be required, or have a default");
    }
  }

  void defaults(json const& s, std::string const& field) {
    json value = s["default"];
    std::vector<cause> wrong;
    check(s, value, "", wrong);
    std::vector<std::string> gone;
    prune(s, value, "", false, gone);
    if (!wrong.empty() || !gone.empty()) forbid(field + ".default", "is no value that the schema takes");
  }

  void rules(json const& s, std::string const& field, bool correlated, double more) {
    json const list = s.value("x-kubernetes-validations", json::array());
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string const at = fmt::format("{}.x-kubernetes-validations[{}]", field, i);
      static std::set<std::string> const reasons{"FieldValueInvalid", "FieldValueForbidden",
                                                 "FieldValueRequired", "FieldValueDuplicate"};
      if (list[i].value("message", "").find('\n') != std::string::npos)
        forbid(at + ".message", "has line breaks");
      if (list[i].contains("reason") && !reasons.contains(list[i]["reason"]))
        forbid(at + ".reason", "is none of the reasons that there are");
      if (std::string const path = list[i].value("fieldPath", ""); !path.empty())
        if (!path.starts_with('.') || !part(s, "properties").contains(path.substr(1)))
          forbid(at + ".fieldPath", "does not refer to a valid field");
      try {
        std::string const text = list[i].at("rule");
        auto const rule = cel::parse(text);
        cel::check(rule, s);
        if (cel::uses_old_self(rule) && !correlated)
          forbid(at + ".rule", "oldSelf cannot be used on the uncorrelatable portion of the schema");
        double const each = cel::cost(rule, s) * more;
        costs.push_back({field, text, each});
        total_ += each;
        if (each > most_rule_cost)
          forbid(at + ".rule",
                 fmt::format(
                     "estimated rule cost exceeds budget by factor of {:.1f}x (try simplifying the rule, "
                     "or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
                     "declared)",
                     each / most_rule_cost));
      } catch (std::exception const& e) {
        wrongs.push_back({"FieldValueInvalid", at + ".rule",
                          fmt::format("Invalid value: {}: compilation failed: ERROR: {}",
                                      list[i].value("rule", json()).dump(), e.what())});
      }
    }
  }

  double total_ = 0;
};

}  // namespace

std::vector<cause> schema_errors(json const& schema, std::string const& field) {
  inspection i;
  i.look_at(schema, field, true, true, 1);
  i.end(field);
  return i.wrongs;
}

std::vector<rule_cost> rule_costs(json const& schema) {
  inspection i;
  i.look_at(schema, "", true, true, 1);
  return i.costs;
}

std::vector<std::string> prune(json const& schema, json& o) {
  std::vector<std::string> gone;
  prune(schema, o, "", true, gone);
  return gone;
}

void fill_defaults(json const& schema, json& o) {
  if (o.is_array() && schema.contains("items"))
    for (json& one : o) fill_defaults(schema["items"], one);
  if (!o.is_object()) return;
  for (auto const& [name, of_member] : part(schema, "properties").items()) {
    bool const absent =
        !o.contains(name) || (o[name].is_null() && !is_set(of_member, "nullable"));  // a null is dropped
    if (of_member.contains("default") && absent) o[name] = of_member["default"];
  }
  for (auto& [name, value] : o.items())
    if (json const* const known = member(schema, name)) fill_defaults(*known, value);
}

std::vector<cause> object_errors(json const& schema, json const& o, json const* before) {
  std::vector<cause> out;
  check(schema, o, "", out);
  check_lists(schema, o, "", out);
  static std::set<std::string> const blocking{"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
                                              "FieldValueTypeInvalid"};
  if (!has_rules(schema)) return out;
  if (std::ranges::any_of(out, [](cause const& c) { return blocking.contains(c.reason); })) {
    out.push_back({"FieldValueInvalid", "<nil>",
                   "Invalid value: \"null\": some validation rules were not checked because the object was "
                   "invalid; correct the existing errors to complete validation"});
    return out;
  }
  ask_rules(schema, o, before, "", out);
  return out;
}

}  // namespace edl::testing::kubernetes
