// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace table_test {

// What a cluster says stands in these: reasons and messages of events, names, annotations.
TEST_CASE("a cell of a table moves no cursor, and the columns are equal all the same") {
  CHECK(edl::tool::to_table({{"REASON", "MESSAGE"}, {"Fa\x1b[2Jiled", "a\nb\u009b1m"}, {"\xfc", "c"}}) ==
        "REASON       MESSAGE\n"
        "Fa [2Jiled   a b 1m\n"
        "?            c\n");
}

TEST_CASE("JSON and YAML quote what drives a terminal, and what is no UTF-8 ends no command") {
  nlohmann::json const all{{"a", "\x1b[31m \x7f \u009b \xc3\xbc \xfc"}};
  std::string const as_json = edl::tool::to_text(all, "json");
  CHECK(as_json == "{\n  \"a\": \"\\u001b[31m \\u007f \\u009b \xc3\xbc \xef\xbf\xbd\"\n}\n");
  nlohmann::json const valid{{"a", "\x1b[31m \u009b"}};
  CHECK(nlohmann::json::parse(edl::tool::to_text(valid, "json")) == valid);
  for (char const c : edl::tool::to_text(valid, "yaml")) CHECK((c == '\n' || (c >= ' ' && c < 0x7f)));
}

}  // namespace table_test
