// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/published_tables.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"

namespace published_tables_test {

using edl::data::format;
using edl::data::open_source;

TEST_CASE("census income is read as UCI has it") {
  support::scratch const dir;
  std::string const path = support::write(dir / "adult.test",
                                          "|1x3 Cross validator\n25, Private, 226802, 11th, 7, "
                                          "Never-married, Machine-op-inspct, Own-child, Black, "
                                          "Male, 0, 0, 40, United-States, <=50K.\n\n38, ?, 89814, HS-grad, "
                                          "9, Married-civ-spouse, Sales, Husband, "
                                          "White, Male, 5, 0, 50, United-States, >50K\n");
  auto const source = open_source(path, {.as = format::census});
  REQUIRE(source->shards()[0].records == 2);
  auto const reader = source->open();
  edl::example record;
  reader->read(0, 0, record);
  CHECK(record.size() == 15);
  CHECK(record.integer("age") == 25);
  CHECK(record.bytes("workclass") == "Private");
  CHECK(record.integer("hours_per_week") == 40);
  CHECK(record.bytes("label") == "<=50K");
  reader->read(0, 1, record);
  CHECK(record.bytes("workclass") == "?");
  CHECK(record.integer("capital_gain") == 5);
  CHECK(record.bytes("label") == ">50K");
}

TEST_CASE("Criteo's click logs have counts that may be missing, and texts that may look like numbers") {
  support::scratch const dir;
  std::string row = "1\t1";
  for (int i = 2; i <= 13; ++i) row += i == 3 ? "\t" : "\t-1";
  for (int i = 1; i <= 26; ++i) row += i == 2 ? "\t" : "\t68000001";
  auto const source = open_source(support::write(dir / "train.txt", row + "\n0\n"), {.as = format::criteo});
  auto const reader = source->open();
  edl::example record;
  reader->read(0, 0, record);
  CHECK(record.integer("label") == 1);
  CHECK(record.integer("i2") == -1);
  CHECK_FALSE(record.contains("i3"));
  CHECK(record.bytes("c1") == "68000001");
  CHECK(record.bytes("c2").empty());
  CHECK(
      support::has(support::failure([&] { reader->read(0, 1, record); }), "train.txt:2: expected 40 fields"));
}

}  // namespace published_tables_test
