// SPDX-License-Identifier: Apache-2.0
#include "data/survey.hpp"

#include <nlohmann/json.hpp>

#include "command/tool.hpp"
#include "compute/data/pictures.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/source.hpp"

namespace survey_test {

using nlohmann::json;
using support::has;

TEST_CASE(
    "columns are told with kind, range, missing cells and distinct values, and records as a person reads "
    "them") {
  support::scratch const dir;
  std::string text = "age,job,x,label,day\n";
  for (int i = 0; i < 40; ++i)
    text += (i % 4 == 0 ? "" : std::to_string(20 + i)) + (i % 2 == 0 ? ",clerk," : ",\"sales, retail\",") +
            (i == 7 ? "7o5" : std::to_string(i) + ".5") + "," + std::to_string(i % 3) +
            (i % 8 == 0 ? "," : ",2026-01-01") + "\n";
  std::string const path = support::write(dir / "a.csv", text);
  auto const told = tool_test::run({"data", "inspect", path});
  CAPTURE(told.out);
  CHECK(told.code == 0);
  CHECK(has(told.out, "40 records in 1 shard"));
  CHECK(has(told.out, "record 0 of a.csv\n"));
  CHECK(has(told.out, "job    \"clerk\"\n"));
  CHECK(has(told.err, "a.csv:9: '7o5' makes column 'x' a text; 39 of its cells are numbers, 1 are not"));
  json const all = json::parse(tool_test::run({"data", "inspect", path, "-o", "json"}).out);
  CHECK(all["features"] == json::parse(R"([
    {"name": "age", "kind": "integers", "values": 1, "missing": 10, "min": 21.0, "max": 59.0, "distinct": 30},
    {"name": "day", "kind": "bytes", "values": 1, "missing": 5, "distinct": 1},
    {"name": "job", "kind": "bytes", "values": 1, "missing": 0, "distinct": 2},
    {"name": "label", "kind": "integers", "values": 1, "missing": 0, "min": 0.0, "max": 2.0, "distinct": 3},
    {"name": "x", "kind": "bytes", "values": 1, "missing": 0, "distinct": 40}])"));
  CHECK(all["sample"] == 40);
  CHECK(json::parse(tool_test::run({"data", "inspect", path, "-o", "json", "--sample=10"}).out)["sample"] ==
        10);
}

TEST_CASE("a sample is spread over all shards, and damaged records are no part of it") {
  support::scratch const dir;
  std::string one = "n\n", two = "n\n";
  for (int i = 0; i < 90; ++i) one += "1\n";
  for (int i = 0; i < 10; ++i) two += i == 5 ? "2,2\n" : "2\n";
  support::write(dir / "1.csv", one);
  support::write(dir / "2.csv", two);
  auto const from = edl::data::open_source(dir / "*.csv");
  auto const some = edl::tool::survey_records(*from, 20);
  CHECK(some.records + some.unreadable == 20);
  CHECK(some.features.at("n").max == 2);
  auto const all = edl::tool::survey_records(*from, 1000);
  CHECK(all.records == 99);
  CHECK(all.unreadable == 1);
}

TEST_CASE("lists are told by their beginning and their range") {
  support::scratch const dir;
  auto const from = edl::data::open_source(support::write(
      dir / "a.jsonl",
      "{\"l\": [1, 2, 3, 4, 5, 6, 7, 8, 9.5], \"s\": [1, 2], \"t\": [\"a\\u0007\", \"b\"], \"e\": []}\n"));
  edl::example record;
  from->open()->read(0, 0, record);
  CHECK(
      edl::tool::describe(record) ==
      "  e  no values\n  l  9 floats, 1 to 9.5: 1, 2, 3, 4, 5, 6, 7, 8, …\n  s  1, 2\n  t  \"a \", \"b\"\n");
}

TEST_CASE("a contact sheet has pictures by label, in cells of one size") {
  support::scratch const dir;
  for (int i = 0; i < 6; ++i)
    support::write(dir / ((i % 2 == 0 ? "b/" : "a/") + std::to_string(i) + ".png"),
                   edl::data::encode_png(support::plain({10, 20, 1}, i % 2 == 0 ? 200 : 50)));
  auto const told = tool_test::run({"data", "inspect", dir.path(), "--to=" + (dir / "sheet.png")});
  CHECK(told.code == 0);
  CHECK(has(told.out, "LABEL   CLASS   RECORDS"));
  CHECK(has(told.err, "sheet.png: 6 pictures, 3 in a row; by label: a from picture 1, b from picture 4"));
  edl::data::pixels sheet;
  edl::data::decode_picture(support::read(dir / "sheet.png"), sheet);
  CHECK(sheet.extents == edl::shape{2 * 68 + 4, 3 * 68 + 4, 3});
  auto const at = [&](std::size_t y, std::size_t x) { return int(sheet.values[3 * (y * 208 + x)]); };
  CHECK(at(36, 36) == 50);
  CHECK(at(36 + 68, 36) == 200);
  CHECK(at(10, 36) == 255);  // above a picture that is wider than high
  auto const digits = edl::tool::make_contact_sheet(*edl::data::open_source("synthetic:test"), 16);
  CHECK(digits.pictures == 16);
  CHECK(std::ranges::is_sorted(digits.labels));
  CHECK(has(support::failure([&] {
              edl::tool::make_contact_sheet(*edl::data::open_source(support::write(dir / "a.csv", "x\n1\n")),
                                            16);
            }),
            "the records have no pictures"));
}

}  // namespace survey_test
