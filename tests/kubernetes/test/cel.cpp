// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cel.hpp"

#include <doctest/doctest.h>

namespace edl::testing::kubernetes::cel {
namespace {

json const self = R"({"min": 1, "max": 8, "name": "mnist", "flags": ["a", "b"], "none": {}})"_json;

bool is(std::string const& rule, json const* old = nullptr) { return holds(parse(rule), self, old); }

json const schema = R"({"type": "object", "properties": {
  "name": {"type": "string", "maxLength": 10}, "long": {"type": "string"},
  "list": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}})"_json;

}  // namespace

TEST_CASE("operators bind as in C, and compare by value") {
  CHECK(is("self.min <= self.max && self.max < 9 || false"));
  CHECK(is("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && 7 % 2 == 1 && -1 < 0"));
  CHECK(is("self.name == 'mnist' && self.name != \"x\" && self.flags == ['a', 'b']"));
  CHECK(is("!(self.min > self.max) ? true : false"));
  CHECK(is("'b' in self.flags && !('c' in self.flags)"));
  CHECK_FALSE(is("self.min == 2"));
}

TEST_CASE("has, sizes, texts and loops") {
  CHECK(is("has(self.min) && !has(self.replicas) && !has(self.none.x)"));
  CHECK(is("size(self.name) == 5 && self.flags.size() == 2 && size(self.none) == 0"));
  CHECK(
      is("self.name.contains('nis') && self.name.startsWith('m') && self.name.endsWith('t') && "
         "self.name.matches('^m.*t$')"));
  CHECK(is("self.flags.all(f, f != 'c') && self.flags.exists(f, f == self.flags[1])"));
  CHECK(is("self.none.all(k, false)"));
}

TEST_CASE("what fails does not matter where the other side decides, and says what was missing otherwise") {
  CHECK(is("true || self.replicas == 1"));
  CHECK(is("self.replicas == 1 || true"));
  CHECK_FALSE(is("self.replicas == 1 && false"));
  CHECK_THROWS_WITH(is("self.replicas == 1 || false"), "no such key: replicas");
  CHECK_THROWS_WITH(is("self.flags[2] == ''"), "index out of bounds: 2");
  CHECK_THROWS_AS(is("self.name < 1"), error);
  CHECK_THROWS_AS(is("self.name"), error);
}

TEST_CASE("a rule that compares with what was is known as one") {
  json const old{{"name", "other"}};
  CHECK(uses_old_self(parse("self == oldSelf")));
  CHECK_FALSE(uses_old_self(parse("self.old == 1")));
  CHECK(is("self.name != oldSelf.name", &old));
}

TEST_CASE("what is no rule is refused") {
  for (char const* bad :
       {"", "self.", "1 +", "self.x(", "quantity('1')", "self.all(f)", "'open", "1 2", "has(self)", "#"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse(bad), error);
  }
  CHECK_THROWS_WITH(check(parse("self.nme == ''"), schema), "undefined field 'nme'");
  CHECK_THROWS_WITH(check(parse("self.list.all(x, x.m == 1)"), schema), "undefined field 'm'");
  CHECK_THROWS_AS(check(parse("other == 1"), schema), error);
  CHECK_NOTHROW(check(parse("self.list.all(x, x.n == 1) && has(self.name)"), schema));
}

TEST_CASE("a rule costs what the longest texts and lists make of it") {
  double const bounded = cost(parse("self.name.contains('x')"), schema);
  CHECK(bounded < 10);
  CHECK(cost(parse("self.long.contains('x')"), schema) > 1e5);
  CHECK(cost(parse("self.list.all(x, x.n == 1)"), schema) > 5 * 3);
  CHECK(longest(schema["properties"]["list"]) == 5);
}

}  // namespace edl::testing::kubernetes::cel
