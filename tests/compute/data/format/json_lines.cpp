// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/json_lines.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/source.hpp"

namespace json_lines_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

template <class T>
bool same(std::span<T const> values, std::vector<T> const& expected) {
  return std::ranges::equal(values, expected);
}

}  // namespace

TEST_CASE("members are features: numbers, truths, texts, lists, and what stands in objects") {
  support::scratch const dir;
  auto const s =
      open_source(support::write(dir / "a.jsonl",
                                 "{\"n\": 1, \"x\": 2, \"yes\": true, \"t\": \"a \\u00e9 \\n\", "
                                 "\"list\": [1, 2.5], \"o\": {\"a\": {\"b\": 7}, \"c\": 8}}\r\n"
                                 "\n"
                                 "  {\"x\": 1.5, \"n\": null, \"m\": [[1, 2], [3, 4]], \"words\": "
                                 "[\"u\", \"\"], \"list\": [], \"big\": [18446744073709551615, 0.5]}"));
  REQUIRE(s->shards() == std::vector<shard>{{"a.jsonl", 2}});
  auto const in = s->open();
  example e;
  in->read(0, 0, e);
  CHECK(e.integer("n") == 1);
  CHECK(e.float_values("x")[0] == 2);  // because of the other line
  CHECK(e.integer("yes") == 1);
  CHECK(e.bytes("t") == "a \u00e9 \n");
  CHECK(same(e.float_values("list"), {1, 2.5f}));
  CHECK(e.integer("o.a.b") == 7);
  CHECK(e.integer("o.c") == 8);
  in->read(0, 1, e);
  CHECK(e.floating("x") == 1.5f);
  CHECK(!e.contains("n"));
  CHECK(same(e.integer_values("m"), {1, 2, 3, 4}));
  CHECK(e.bytes("words", 0) == "u");
  CHECK(e.bytes("words", 1) == "");
  CHECK(e.count("list") == 0);
  CHECK(e.float_values("big")[0] == 18446744073709551615.0f);
  CHECK(has(failure([&] { in->read(0, 2, e); }), "no line 2: the file has 2"));
}

TEST_CASE("a line that is no record is named with its number, and the column where it is known") {
  support::scratch const dir;
  auto const path =
      support::write(dir / "b.ndjson",
                     "{\"a\": 1}\n\n{\"a\": }\n[1]\n5\n{\"a\": \"x\"}\n{\"a\": [1, \"x\"]}\n"
                     "{\"a\": [null]}\n{\"a\": [{}]}\n{\"a\": 1, \"a\": 2}\n{\"a\": \"\xff\"}\n{\"a\": 1} 2\n"
                     "{\"a\": " +
                         std::string(100, '[') + std::string(100, ']') + "}\n{\"a\": 2}\n");
  json_lines_source const s(path);
  REQUIRE(s.shards()[0].records == 13);
  auto const in = s.open();
  std::vector<std::string> said;
  example e;
  for (std::uint64_t i = 1; i < 12; ++i) {
    auto const why = failure([&] { in->read(0, i, e); });
    said.push_back(why.substr(std::min(path.size(), why.size())));
  }
  CHECK(said == std::vector<std::string>{
                    ":3:7: feature 'a': expected JSON, found }", ":4: expected an object, found a list",
                    ":5: expected an object", ":6: expected a number in feature 'a', found a text",
                    ":7: expected numbers or texts in the list 'a', found both",
                    ":8: expected a value in the list 'a', found null",
                    ":9: expected no object in the list 'a'", ":10: feature 'a' occurs twice",
                    ":11:8: feature 'a': expected UTF-8, found other bytes in a text",
                    ":12:10: expected JSON, found 2",
                    ":13: expected at most 64 objects and lists in one another"});
  in->read(0, 12, e);
  CHECK(e.integer("a") == 2);
}

TEST_CASE("a text among numbers is the fault of its own line, also of the first") {
  support::scratch const dir;
  json_lines_source const s(
      support::write(dir / "f.jsonl", "\n{\"x\": \"a\"}\n{\"x\": [1, 2]}\n{\"x\": 2.5}\n"));
  auto const in = s.open();
  example e;
  CHECK(
      has(failure([&] { in->read(0, 0, e); }), "f.jsonl:2: expected a number in feature 'x', found a text"));
  CHECK(s.line_in_file(0, 0) == 2);
  in->read(0, 1, e);
  CHECK(e.integers("x")[1] == 2);
  CHECK(e.floats("x")[1] == 2);
  in->read(0, 2, e);
  CHECK(has(failure([&] { e.integer("x"); }), "has not integers as feature 'x', but 2.5; it has"));
}

TEST_CASE("what other languages write in place of JSON is named, with its feature") {
  support::scratch const dir;
  auto const said = [&](std::string const& line) {
    auto const path = support::write(dir / "c.jsonl", "{\"x\": 1}\n" + line + "\n");
    json_lines_source const s(path);
    example e;
    auto const why = failure([&] { s.open()->read(0, 1, e); });
    return why.substr(std::min(path.size(), why.size()));
  };
  for (std::string const word : {"NaN", "Infinity", "-Infinity", "None", "True"})
    CHECK(said("{\"x\": " + word + "}") ==
          ":2:7: feature 'x': " + word +
              " is not JSON: write null, true, false or a number, or leave the feature out");
  CHECK(said(R"({"b": 1, "x": [1, NaN]})").find("feature 'x': NaN is not JSON") != std::string::npos);
  CHECK(said(R"({"x": 1e999})") == ":2:7: feature 'x': 1e999 is more than a number can be");
  CHECK(said(R"({"x": 'y'})") ==
        ":2:7: feature 'x': a text is in double quotes in JSON, and this is in single ones");
  CHECK(said(R"({'x': 1})") == ":2:2: a text is in double quotes in JSON, and this is in single ones");
  CHECK(said(R"({"x": 1, })") == ":2:10: expected a value behind the comma, found }");
  CHECK(said(R"({"x": [1,]})") == ":2:10: feature 'x': expected a value behind the comma, found ]");
  CHECK(said(R"({"x": 1)") == ":2:8: expected JSON, found the end of the line");
  CHECK(said(R"({"x": 1}{"x": 2})") == R"(:2:9: expected JSON, found {"x": 2})");
  CHECK(said("{\"x\": \"caf\xe9\"}").find("expected UTF-8") != std::string::npos);
}

TEST_CASE("lines over the border of a block, packed or not") {
  support::scratch const dir;
  std::string text;
  for (int i = 0; i < 60'000; ++i)
    text += "{\"i\": " + std::to_string(i) + ", \"s\": \"" + std::string(std::size_t(i % 50), 'x') + "\"}\n";
  std::string packed;
  detail::pack_gzip(text, packed);
  support::write(dir / "l.jsonl", text);
  support::write(dir / "p.jsonl.gz", packed);
  for (char const* name : {"l.jsonl", "p.jsonl.gz"}) {
    auto const s = open_source(dir / name);
    REQUIRE(records(*s) == 60'000);
    auto const in = s->open();
    example e;
    for (std::uint64_t i = 0; i < 60'000; i += 501) {
      in->read(0, i, e);
      CHECK(e.integer("i") == std::int64_t(i));
      CHECK(e.bytes("s").size() == i % 50);
    }
  }
  CHECK(has(failure([&] {
              json_lines_source{support::write(dir / "w.jsonl", "{}\n\"" + std::string(17 << 20, 'x'))};
            }),
            "w.jsonl:2: is longer than 16777216 bytes"));
}

TEST_CASE("other content has another digest, and a file that changes is noticed") {
  support::scratch const dir;
  auto const of = [&](char const* text) {
    return json_lines_source(support::write_anew(dir / "a.jsonl", text)).digest(0);
  };
  CHECK(of("{\"a\":1}\n") == of("{\"a\":1}\n"));
  CHECK(of("{\"a\":1}\n") != of("{\"a\":2}\n"));
  json_lines_source const s(dir / "a.jsonl");
  CHECK(s.digest(1) == 0);
  std::filesystem::resize_file(dir / "a.jsonl", 3);
  example e;
  CHECK(!failure([&] { s.open()->read(0, 0, e); }).empty());
}

TEST_CASE("JSON lines damaged at random are errors or other records") {
  support::scratch const dir;
  std::string const good =
      "{\"a\": 1, \"b\": [1.5, 2], \"c\": {\"d\": \"x\"}}\n{\"a\": 2, \"b\": []}\n{\"c\": {\"d\": \"y\"}}\n";
  int read = 0, refused = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    support::write_anew(dir / "m.jsonl", support::mutate(good, {8, i}));
    auto const why = failure([&] {
      json_lines_source const s{dir / "m.jsonl"};
      auto const in = s.open();
      example e;
      for (std::uint64_t n = 0; n < s.shards()[0].records; ++n) in->read(0, n, e), ++read;
    });
    refused += !why.empty();
  }
  CHECK(read > 1500);
  CHECK(refused > 1000);
}

TEST_CASE("a whole number that no integer holds makes its feature a text, and leaves the others alone") {
  support::scratch const dir;
  json_lines_source const s{support::write(dir / "a.jsonl",
                                           "{\"id\": 1, \"y\": 4}\n"
                                           "{\"id\": [9223372036854775808, 7, 99999999999999999999]}\n"
                                           "{\"x\": 99999999999999999999}\n{\"x\": 0.5}\n")};
  REQUIRE(s.notes().size() == 1);  // x is a float
  CHECK(has(s.notes()[0],
            "a.jsonl:2: 9223372036854775808 does not fit 64 bits with a sign, and makes column 'id' of whole "
            "numbers a text"));
  auto const in = s.open();
  example e;
  in->read(0, 0, e);
  CHECK(e.bytes("id") == "1");
  CHECK(e.integer("y") == 4);
  in->read(0, 1, e);
  CHECK(e.count("id") == 3);
  CHECK(e.bytes("id", 0) == "9223372036854775808");
  CHECK(e.bytes("id", 1) == "7");
  CHECK(e.bytes("id", 2) == "99999999999999999999");
  in->read(0, 2, e);
  CHECK(e.float_values("x")[0] == 1e20f);
}

}  // namespace json_lines_test
