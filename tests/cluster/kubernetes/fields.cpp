// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/fields.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace fields_test {

using namespace edl::kubernetes;

TEST_CASE("Fields are found along a path, and anything else is as if empty") {
  nlohmann::json const j{{"a", {{"b", {{{"c", "x"}}}}}}, {"n", "42"}, {"m", 42}};
  CHECK(text(field(first(field(j, {"a", "b"})), {"c"})) == "x");
  CHECK(field(j, {"a", "b", "c"}).is_null());
  CHECK(field(nlohmann::json::array(), {"a"}).is_null());
  CHECK(first(field(j, {"a"})).is_null());
  CHECK(text(field(j, {"m"})).empty());
  CHECK(number(field(j, {"n"})) == 42u);
  CHECK_FALSE(number(field(j, {"m"})));
  CHECK_FALSE(number(std::string("")));
  CHECK_FALSE(number(std::string("-1")));
  CHECK_FALSE(number(std::string("4294967296")));
  CHECK_FALSE(number(std::string("7x")));
}

}  // namespace fields_test
