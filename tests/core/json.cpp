// SPDX-License-Identifier: Apache-2.0
#include "edl/core/json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace json_test {

using edl::nested_too_deeply;
using edl::parse_json;

TEST_CASE("nesting is counted, brackets in strings are not") {
  auto const lists = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK_FALSE(nested_too_deeply(""));
  CHECK_FALSE(nested_too_deeply(lists(200)));
  CHECK(nested_too_deeply(lists(201)));
  CHECK(nested_too_deeply(lists(3), 2));
  CHECK_FALSE(nested_too_deeply("[[],[],[]]", 2));
  CHECK(nested_too_deeply(R"({"a":{"b":[]}})", 2));
  CHECK_FALSE(nested_too_deeply("\"" + lists(1000) + "\""));
  CHECK(nested_too_deeply(R"(["\"",[[]]])", 2));
  CHECK_FALSE(nested_too_deeply(R"(["\\",[]])", 2));
  CHECK_FALSE(nested_too_deeply("]]]]\"["));
}

TEST_CASE("a text that is no JSON, or nested too deeply, has no value") {
  auto const lists = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK(parse_json(R"({"a": [1]})")["a"][0] == 1);
  CHECK(parse_json("null").is_null());
  CHECK(parse_json("").is_discarded());
  CHECK(parse_json("{} x").is_discarded());
  CHECK(parse_json("\"\xff\"").is_discarded());
  CHECK(parse_json(lists(200)).is_array());
  CHECK(parse_json(lists(201)).is_discarded());
  CHECK(parse_json(lists(3), 2).is_discarded());
  CHECK(edl::why_no_json(lists(201)) == "nested deeper than 200 levels");
  CHECK(edl::why_no_json("{\n \"a\": ]").starts_with("not JSON: parse error at line 2, column 7: "));
}

TEST_CASE("a key that an object has twice is refused: either value may be the one that was meant") {
  for (std::string const twice : {R"({"a": 1, "a": 1})", R"([{"b": {"a": 1, "b": {}, "a": {}}}])"}) {
    CHECK(parse_json(twice).is_discarded());
    CHECK(edl::why_no_json(twice) == "JSON with the key 'a' twice in one object");
  }
  CHECK(edl::why_no_json(R"({"\n": 1, "\u000a": 2})") == "JSON with the key ' ' twice in one object");
  CHECK(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])").size() == 2);
}

}  // namespace json_test
