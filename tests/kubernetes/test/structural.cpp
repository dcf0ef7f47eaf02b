// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/structural.hpp"

#include <doctest/doctest.h>

namespace edl::testing::kubernetes {
namespace {

json schema() {
  return R"({"type": "object", "properties": {
    "metadata": {"type": "object"},
    "spec": {"type": "object", "required": ["n"], "properties": {
      "n": {"type": "integer", "minimum": 1, "maximum": 9}, "word": {"type": "string", "enum": ["a", "b"], "default": "a"},
      "text": {"type": "string", "maxLength": 3, "pattern": "^x"}, "when": {"type": "string", "format": "date-time"},
      "amount": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
      "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "shut": {"type": "object", "properties": {}}}},
      "labels": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
      "list": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
          "k": {"type": "integer", "default": 5}}}}}}}})"_json;
}

json object(json const& spec) { return {{"metadata", {{"name", "x"}}}, {"spec", spec}}; }

std::vector<std::string> said(json const& spec, json const& of = schema(), json const* before = nullptr) {
  std::vector<std::string> out;
  for (cause const& c : object_errors(of, object(spec), before)) out.push_back(c.field + ": " + c.message);
  return out;
}

/// What is said of the schema with another value at one place.
std::string refused(char const* at, json const& value) {
  json s = schema();
  s[json::json_pointer(at)] = value;
  auto const wrongs = schema_errors(s);
  return wrongs.empty() ? "" : wrongs[0].field + ": " + wrongs[0].message;
}

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("unknown fields go, except where they are kept, and defaults come") {
  json o = object({{"n", 1},
                   {"x", 1},
                   {"open", {{"y", 1}, {"shut", {{"z", 1}}}}},
                   {"list", {{{"name", "a"}, {"w", 1}}}}});
  o["metadata"]["anything"] = 1;
  CHECK(prune(schema(), o) == words{"spec.list[0].w", "spec.open.shut.z", "spec.x"});
  CHECK(o["metadata"]["anything"] == 1);
  CHECK(o["spec"]["open"] == json{{"y", 1}, {"shut", json::object()}});
  o["spec"]["word"] = nullptr;
  fill_defaults(schema(), o);
  CHECK(o["spec"]["word"] == "a");
  CHECK(o["spec"]["list"][0]["k"] == 5);
}

TEST_CASE("what is wrong with an object is told in the server's words") {
  CHECK(said({{"n", 1}, {"amount", 1}, {"when", "2026-11-22T10:00:00Z"}}).empty());
  CHECK(said({{"n", 0}}) ==
        words{"spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"});
  CHECK(said({{"n", 10}}) ==
        words{"spec.n: Invalid value: 10: spec.n in body should be less than or equal to 9"});
  CHECK(said({{"n", "1"}}) ==
        words{"spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\""});
  CHECK(said(json::object()) == words{"spec.n: Required value"});
  CHECK(said({{"n", 1}, {"word", "c"}}) ==
        words{"spec.word: Unsupported value: \"c\": supported values: \"a\", \"b\""});
  CHECK(said({{"n", 1}, {"text", "xxxx"}}) == words{"spec.text: Too long: may not be more than 3 bytes"});
  CHECK(said({{"n", 1}, {"text", "y"}}) ==
        words{"spec.text: Invalid value: \"y\": spec.text in body should match '^x'"});
  CHECK(said({{"n", 1}, {"amount", true}}).at(0).find("must be of type integer,string") != std::string::npos);
  CHECK(said({{"n", 1}, {"when", "now"}}).at(0).find("must be of type date-time") != std::string::npos);
  CHECK(said({{"n", 1}, {"labels", {{"a", "b"}, {"c", "d"}}}}) ==
        words{"spec.labels: Too many: 2: must have at most 1 items"});
  json const twice{{{"name", "a"}}, {{"name", "a"}}};
  CHECK(said({{"n", 1}, {"list", twice}}) == words{"spec.list[1]: Duplicate value: {\"name\":\"a\"}"});
}

TEST_CASE(
    "rules are asked of whole objects, transition rules of changed ones, and none where it could stumble") {
  json s = schema();
  s["properties"]["spec"]["x-kubernetes-validations"] = {
      {{"rule", "self.n < 5"}, {"message", "n is too great"}, {"fieldPath", ".n"}},
      {{"rule", "self.n >= oldSelf.n"}, {"message", "n falls"}, {"reason", "FieldValueForbidden"}}};
  CHECK(said({{"n", 6}}, s) == words{"spec.n: Invalid value: \"object\": n is too great"});
  json const before = object({{"n", 3}});
  CHECK(said({{"n", 2}}, s, &before) == words{"spec: Forbidden: n falls"});
  CHECK(said({{"n", 2}}, s).empty());
  CHECK(said({{"n", 6}, {"text", "xxxx"}}, s)
            .at(1)
            .starts_with("<nil>: Invalid value: \"null\": some validation rules were not"));
}

TEST_CASE("a schema that is not structural is refused, with its place") {
  CHECK(schema_errors(schema()).empty());
  CHECK(
      refused("/properties/spec/properties/n", json::object()) ==
      "openAPIV3Schema.properties[spec].properties[n].type: Required value: must not be empty for specified");
  CHECK(refused("/properties/metadata/description", "of all objects")
            .find("metadata is implicitly specified") != std::string::npos);
  CHECK(refused("/properties/spec/properties/labels/properties", json::object()).find("exclude each other") !=
        std::string::npos);
  CHECK(refused("/properties/spec/properties/n/x-kubernetes-preserve-unknown-fields", true) != "");
  CHECK(refused("/properties/spec/properties/word/default", "c") != "");
  CHECK(refused("/properties/spec/properties/amount/type", "string") != "");
  CHECK(
      refused("/properties/spec/properties/list/items/required", json::array()).find("has to be required") !=
      std::string::npos);
  CHECK(refused("/properties/spec/properties/list/x-kubernetes-list-map-keys", {"nme"}) != "");
  CHECK(refused("/properties/spec/properties/list/x-kubernetes-list-type", "bag") != "");
  CHECK(refused("/properties/spec/required", {"m"}) != "");
  CHECK(refused("/properties/spec/properties/n/$ref", "#/x") != "");
  CHECK(refused("/properties/spec/properties/text/anyOf", {{{"type", "string"}}}) != "");
  CHECK(refused("/type", "array") != "");
}

TEST_CASE("a rule that cannot be read, names no field or may cost too much is refused") {
  auto const rule = [](char const* at, json const& one) {
    return refused((std::string(at) + "/x-kubernetes-validations").c_str(), json::array({one}));
  };
  char const *const spec = "/properties/spec", *const element = "/properties/spec/properties/list/items";
  CHECK(rule(spec, {{"rule", "self.n > 0"}}).empty());
  CHECK(rule(spec, {{"rule", "self.m > 0"}}).find("undefined field 'm'") != std::string::npos);
  CHECK(rule(spec, {{"rule", "self.n >"}}).find("compilation failed") != std::string::npos);
  CHECK(rule(spec, {{"rule", "self.n > 0"}, {"fieldPath", ".m"}}) != "");
  CHECK(rule(spec, {{"rule", "self.n > 0"}, {"reason", "Because"}}) != "");
  CHECK(rule(spec, {{"rule", "self.n > 0"}, {"message", "a\nb"}}) != "");
  CHECK(
      rule(element, {{"rule", "self.k == oldSelf.k"}}).empty());  // a map's elements are known by their keys
  json s = schema();
  s["properties"]["spec"]["properties"]["list"].erase("x-kubernetes-list-type");
  s["properties"]["spec"]["properties"]["list"].erase("x-kubernetes-list-map-keys");
  s["properties"]["spec"]["properties"]["list"]["items"]["x-kubernetes-validations"] = {
      {{"rule", "self == oldSelf"}}};
  CHECK(schema_errors(s).at(0).message.find("uncorrelatable") != std::string::npos);
  s = schema();
  json& list = s["properties"]["spec"]["properties"]["list"];
  list.erase("maxItems");
  list["items"]["x-kubernetes-validations"] = {{{"rule", "self.name.contains('x')"}}};
  CHECK(schema_errors(s).at(0).message.find("exceeds budget by factor of") != std::string::npos);
}

}  // namespace edl::testing::kubernetes
