// SPDX-License-Identifier: Apache-2.0
#include "submit/schema.hpp"

#include <nlohmann/json.hpp>

#include "command/tool.hpp"
#include "common/yaml.hpp"

namespace schema_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
using tool_test::refusal;

namespace {

std::string said(std::string const& schema, json const& value) {
  return refusal([&] { check_schema(from_yaml(schema, "schema"), value, "f", "spec"); });
}

}  // namespace

TEST_CASE("a value is held against a schema, strictly") {
  std::string const s = R"(
type: object
required: [size]
properties:
  size: {type: integer, minimum: 1, maximum: 5}
  kind: {type: string, enum: [fair, throughput]}
  name: {type: string, minLength: 1, maxLength: 3, pattern: "^[a-z]+$"}
  list: {type: array, maxItems: 2, items: {type: boolean}}
  port: {x-kubernetes-int-or-string: true}
  open: {type: object, x-kubernetes-preserve-unknown-fields: true}
  texts: {type: object, maxProperties: 1, additionalProperties: {type: string}}
)";
  CHECK(said(s, {{"size", 5},
                 {"kind", "fair"},
                 {"name", "abc"},
                 {"list", {true, false}},
                 {"port", "http"},
                 {"open", {{"any", 1}}},
                 {"texts", {{"a", "b"}}}}) == "accepted");
  CHECK(said(s, {{"size", 1}, {"kind", nullptr}}) == "accepted");  // the server drops what is null
  CHECK(said(s, json::object()) == "f: spec.size: is missing");
  CHECK(said(s, {{"size", nullptr}}) == "f: spec.size: is missing");
  CHECK(said(s, {{"size", 0}}) == "f: spec.size: 0: expected 1 or more");
  CHECK(said(s, {{"size", 6}}) == "f: spec.size: 6: expected 5 or less");
  CHECK(said(s, {{"size", "2"}}) == "f: spec.size: \"2\": expected a number");
  CHECK(said(s, {{"size", 1.5}}) == "f: spec.size: 1.5: expected a number");
  CHECK(
      has(said(s, {{"size", 1}, {"kind", "fiar"}}), "expected one of fair, throughput; did you mean fair?"));
  CHECK(has(said(s, {{"size", 1}, {"name", "abcd"}}), "has 4 characters, and may have 3"));
  CHECK(has(said(s, {{"size", 1}, {"name", ""}}), "at least 1 characters"));
  CHECK(has(said(s, {{"size", 1}, {"name", "A"}}), "expected a match of ^[a-z]+$"));
  CHECK(has(said(s, {{"size", 1}, {"list", {true, true, true}}}),
            "spec.list: has 3 items, expected 2 or less"));
  CHECK(has(said(s, {{"size", 1}, {"list", {true, 1}}}), "spec.list[1]: 1: expected true or false"));
  CHECK(has(said(s, {{"size", 1}, {"port", true}}), "spec.port: true"));
  CHECK(has(said(s, {{"size", 1}, {"texts", {{"a", 1}}}}), "spec.texts.a: 1: expected a string"));
  CHECK(has(said(s, {{"size", 1}, {"texts", {{"a", "1"}, {"b", "2"}}}}), "has 2 fields, expected 1 or less"));
  CHECK(said(s, {{"szie", 1}}) == "f: spec.szie: no such field; did you mean size?");
}

}  // namespace schema_test
