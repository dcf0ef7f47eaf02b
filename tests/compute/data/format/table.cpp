// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/table.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/csv.hpp"
#include "edl/compute/data/format/json_lines.hpp"

namespace table_test {

using namespace edl::data;
using edl::example;
using kind = example::kind;

TEST_CASE("the wider of two kinds holds the values of both") {
  CHECK(wider(kind::none, kind::integers) == kind::integers);
  CHECK(wider(kind::integers, kind::floats) == kind::floats);
  CHECK(wider(kind::floats, kind::integers) == kind::floats);
  CHECK(wider(kind::strings, kind::floats) == kind::strings);
  CHECK(wider(kind::integers, kind::integers) == kind::integers);
  CHECK(wider(kind::none, kind::none) == kind::none);
}

TEST_CASE("files of a set have columns of one kind") {
  support::scratch const dir;
  csv_source a(support::write(dir / "a.csv", "x,y,z\n1,2,\n")),
      b(support::write(dir / "b.csv", "z,y,x\n3,n,1.5\n"));
  table* const both[]{&a, &b};
  agree(both);
  example e;
  a.open()->read(0, 0, e);
  CHECK(e.float_values("x")[0] == 1);
  CHECK(e.bytes("y") == "2");
  CHECK(!e.contains("z"));
  b.open()->read(0, 0, e);
  CHECK(e.float_values("x")[0] == 1.5f);
  CHECK(e.integer("z") == 3);
}

TEST_CASE("a CSV file must have all columns, and a number cannot become a text in JSON") {
  support::scratch const dir;
  csv_source a(support::write(dir / "a.csv", "x,y\n1,2\n")), b(support::write(dir / "b.csv", "x\n3\n"));
  table* const tables[]{&a, &b};
  CHECK(support::failure([&] { agree(tables); }) ==
        (dir / "b.csv") + ": lacks the column 'y', which other files of the set have");
  json_lines_source c(support::write(dir / "c.jsonl", "{\"x\": 1}\n")),
      d(support::write(dir / "d.jsonl", "{\"x\": \"one\", \"y\": 2}\n"));
  table* const lines[]{&c, &d};
  CHECK(support::failure([&] { agree(lines); }) ==
        (dir / "c.jsonl") + ": has numbers in feature 'x', which is a text in other files of the set");
}

TEST_CASE("a number too large for an integer makes a text of the column in all files, in JSON, too") {
  support::scratch const dir;
  json_lines_source a(support::write(dir / "a.jsonl", "{\"x\": 1}\n")),
      b(support::write(dir / "b.jsonl", "{\"x\": 18446744073709551615}\n"));
  table* const both[]{&a, &b};
  agree(both);
  example e;
  a.open()->read(0, 0, e);
  CHECK(e.bytes("x") == "1");
  b.open()->read(0, 0, e);
  CHECK(e.bytes("x") == "18446744073709551615");
}

}  // namespace table_test
