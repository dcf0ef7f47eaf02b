// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/status_line.hpp"

#include <doctest/doctest.h>

namespace status_line_test {

using namespace edl::cli;

namespace {
status_line const line{
    {"epoch 1/2", 2}, {"37 %", 0}, {"1873 records/s", 4}, {"loss 0.113", 3}, {"0:57 left", 1}};
}

TEST_CASE("on a narrow terminal the parts of the greatest rank are left out, and the rest keeps its order") {
  CHECK(fit(line, 80) == "epoch 1/2  37 %  1873 records/s  loss 0.113  0:57 left");
  CHECK(fit(line, 54) == "epoch 1/2  37 %  1873 records/s  loss 0.113  0:57 left");
  CHECK(fit(line, 53) == "epoch 1/2  37 %  loss 0.113  0:57 left");
  CHECK(fit(line, 37) == "epoch 1/2  37 %  0:57 left");
  CHECK(fit(line, 25) == "37 %  0:57 left");
  CHECK(fit(line, 14) == "37 %");
  CHECK(fit(line, 2) == "37");
  CHECK(fit(line, 0).empty());
  CHECK(fit({}, 80).empty());
}

TEST_CASE("of parts of the same rank the last one goes first") {
  CHECK(fit({{"aaa", 1}, {"bbb", 1}, {"ccc", 1}}, 8) == "aaa  bbb");
}

TEST_CASE("every character takes one column") { CHECK(fit({{"a\tb\x1b[1mö", 0}}, 80) == "a?b?[1m??"); }

TEST_CASE("a status line goes through a pipe, and no other line is taken for one") {
  std::string const text = encode(line);
  REQUIRE(text.back() == '\n');
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(decode(text.substr(0, text.size() - 1)) == line);
  CHECK(decode("\x1e") == status_line{});
  for (char const* other : {"", "[2026-11-20 13:00:00,123] [INFO] text",
                            "\x1e"
                            "x",
                            "\x1e"
                            "1",
                            "\x1e"
                            "1text"})
    CHECK_FALSE(decode(other));
}

}  // namespace status_line_test
