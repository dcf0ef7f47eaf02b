// SPDX-License-Identifier: Apache-2.0
#include "edl/core/nesting.hpp"

#include <doctest/doctest.h>

#include <string>

namespace nesting_test {

using edl::nested_too_deeply;

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

}  // namespace nesting_test
