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
  CHECK(edl::no_json.find(std::to_string(edl::most_nesting)) != edl::no_json.npos);
}

}  // namespace json_test
