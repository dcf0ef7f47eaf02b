// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/object_reader.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace object_reader_test {

using edl::kubernetes::object_reader;
using nlohmann::json;

TEST_CASE("what is absent or null leaves what it would be read into") {
  json const empty{{"a", nullptr}};
  object_reader const r(empty, "x", "");
  bool flag = true;
  std::string text = "as it was";
  std::vector<std::string> list{"a"};
  int n = 7;
  r.take("a", flag);
  r.take("a", text);
  r.take("b", list, 1, 1);
  r.take_number("b", n, 0, 1);
  CHECK(flag);
  CHECK(text == "as it was");
  CHECK(list.size() == 1);
  CHECK(n == 7);
  CHECK_FALSE(r.has("a"));
  CHECK(r.object("a").find("b") == nullptr);
  CHECK(r.objects("a", 3).empty());
}

TEST_CASE("numbers are whole and within their bounds, at both ends of what 64 bits hold") {
  json const j{{"n", -3}, {"big", 18446744073709551615u}, {"half", 0.5}};
  object_reader const r(j, "x", "p");
  CHECK(r.number("n", -3, 0) == -3);
  CHECK_THROWS_WITH(r.number("n", 0, 9), "x: p.n is -3: expected a whole number from 0 to 9");
  CHECK_THROWS_AS(r.number("n", -9, -4), edl::error);
  CHECK_THROWS_AS(r.number("big", -1, 9223372036854775807), edl::error);
  CHECK_THROWS_AS(r.number("half", 0, 9), edl::error);
  CHECK(r.fraction("half") == 0.5);
  CHECK_THROWS_AS(r.fraction("n"), edl::error);
}

TEST_CASE("an error shows no control character of what it quotes") {
  json const j{{"t", "a\nb\x1b"}, {"zero", std::string("a\0b", 3)}};
  object_reader const r(j, "x", "");
  bool flag = false;
  CHECK_THROWS_WITH(r.take("t", flag), "x: t is \"a\\nb\\u001b\": expected true or false");
  std::string text;
  CHECK_THROWS_WITH(r.take("zero", text), "x: zero holds a zero byte: leave it out");
  CHECK_THROWS_WITH(r.take("t", text, 3), "x: t has 4 bytes: expected a string of at most 3");
}

}  // namespace object_reader_test
