// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/json_lines.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/error.hpp"
#include "edl/core/text.hpp"

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

namespace csv_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

std::string opened(std::string const& path, std::string const& text) {
  return failure([&] { csv_source{support::write(path, text)}; });
}

}  // namespace

TEST_CASE("the header names the features, columns have kinds, quotes may hold anything") {
  support::scratch const dir;
  csv_source const s{support::write(dir / "a.csv",
                                    "id, age ,job,note\r\n"
                                    "1,38.5,clerk,\"one, two\"\r\n"
                                    "-2, 40 ,\"a \"\"b\"\"\",\"line\r\nbreak\"\r\n"
                                    "\r\n"
                                    "3,,5 \"inch\",")};
  CHECK(s.shards() == std::vector<shard>{{"a.csv", 3}});
  REQUIRE(s.columns().size() == 4);
  CHECK(s.columns()[0].kind == example::kind::integers);
  CHECK(s.columns()[1].name == "age");
  CHECK(s.columns()[1].kind == example::kind::floats);
  CHECK(s.columns()[2].kind == example::kind::strings);
  auto const in = s.open();
  example e;
  in->read(0, 0, e);
  CHECK(e.integer("id") == 1);
  CHECK(e.floating("age") == 38.5f);
  CHECK(e.bytes("job") == "clerk");
  CHECK(e.bytes("note") == "one, two");
  in->read(0, 2, e);
  CHECK(e.integer("id") == 3);
  CHECK(!e.contains("age"));
  CHECK(e.bytes("job") == "5 \"inch\"");
  CHECK(e.bytes("note") == "");
  in->read(0, 1, e);
  CHECK(e.integer("id") == -2);
  CHECK(e.floating("age") == 40);
  CHECK(e.bytes("job") == "a \"b\"");
  CHECK(e.bytes("note") == "line\r\nbreak");
  CHECK(has(failure([&] { in->read(0, 3, e); }), "no row 3: the file has 3"));
}

TEST_CASE("numbers: whole, with a fraction, too large, not quite") {
  support::scratch const dir;
  csv_source const s{support::write(dir / "n.csv",
                                    "whole,mixed,huge,text,empty\n"
                                    "1,1,1,1,\n"
                                    "9223372036854775807,2.5e3,99999999999999999999,1x,\n"
                                    "0,0,0.5,,\n")};
  std::vector<example::kind> kinds;
  for (auto const& c : s.columns()) kinds.push_back(c.kind);
  using kind = example::kind;
  CHECK(kinds == std::vector<kind>{kind::integers, kind::floats, kind::floats, kind::strings, kind::none});
  auto const in = s.open();
  example e;
  in->read(0, 0, e);
  CHECK(e.integer("mixed") == 1);
  in->read(0, 1, e);
  CHECK(has(failure([&] { e.integer("mixed"); }), "has not integers as feature 'mixed', but 2500; it has"));
  CHECK(e.integer("whole") == 9223372036854775807);
  CHECK(e.floating("mixed") == 2500);
  CHECK(e.floating("huge") == 1e20f);
  CHECK(e.bytes("text") == "1x");
  CHECK_FALSE(e.contains("empty"));
}

TEST_CASE("a whole number that no integer holds makes its column a text, and leaves the others alone") {
  support::scratch const dir;
  csv_source const s{
      support::write(dir / "l.csv", "id,y\n1,0\n9223372036854775808,1\n-9223372036854775809,1\n")};
  CHECK(s.columns()[0].kind == example::kind::strings);
  REQUIRE(s.notes().size() == 1);
  CHECK(has(s.notes()[0],
            "l.csv:3: 9223372036854775808 does not fit 64 bits with a sign, and makes column 'id' of whole "
            "numbers a text"));
  auto const in = s.open();
  example e;
  in->read(0, 1, e);
  CHECK(e.integer("y") == 1);
  CHECK(e.bytes("id") == "9223372036854775808");  // a float would be another id
  CHECK(has(failure([&] { e.integer("id"); }), "the record has not integers as feature 'id'"));
  in->read(0, 0, e);
  CHECK(e.bytes("id") == "1");
  CHECK(e.integer("id") == 1);
  CHECK(has(failure([&] { e.floating("id"); }), "has not one number as feature 'id', but '1'"));
}

TEST_CASE("another delimiter, a byte order mark, a quoted header, no line end at the end") {
  support::scratch const dir;
  csv_source const s{support::write(dir / "t.csv", "\xEF\xBB\xBF\"a;b\";c\n1,5;x\n2;y"), {.delimiter = ';'}};
  CHECK(s.columns()[0].name == "a;b");
  CHECK(s.columns()[0].kind == example::kind::strings);
  CHECK(s.shards()[0].records == 2);
  auto const in = s.open();
  example e;
  in->read(0, 1, e);
  CHECK(e.bytes("a;b") == "2");
  CHECK(e.bytes("c") == "y");
  CHECK(!failure([&] { csv_source(dir / "t.csv", {.delimiter = '"'}); }).empty());
}

TEST_CASE("rows over the border of a block, and one too long") {
  support::scratch const dir;
  std::string text = "n,s\n";
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + ",\"x\ny\"\n";
  csv_source const s{support::write(dir / "l.csv", text)};
  REQUIRE(s.shards()[0].records == 300'000);
  auto const in = s.open();
  example e;
  for (std::uint64_t i = 0; i < 300'000; i += 97) {
    in->read(0, i, e);
    REQUIRE(e.integer("n") == std::int64_t(i));
    REQUIRE(e.bytes("s") == "x\ny");
  }
  CHECK(has(opened(dir / "l.csv", "a\n\"" + std::string(18 << 20, 'x')),
            "is longer than 16777216 bytes; a quote is never"));
  CHECK(has(opened(dir / "l.csv", "a\n" + std::string((16 << 20) + 1, 'x') + "\n"), "is longer than"));
}

TEST_CASE("what is wrong with a file is told when it is opened, what is wrong with a row when it is read") {
  support::scratch const dir;
  auto const path = dir / "b.csv";
  CHECK(opened(path, "") == path + ": has no header row");
  CHECK(has(opened(path, "\n\n"), "has no header row"));
  CHECK(has(opened(path, "a,,b\n"), "column 2 has no name"));
  CHECK(has(opened(path, "a,b,a\n"), "two columns of the header have the name 'a', the second is column 3"));
  CHECK(has(opened(path, "a\n1\n\"open\n"), path + ":3: a quote is never closed"));
  CHECK(has(opened(path, "\"a\"x\n"), "closing quote in the header"));
  CHECK(has(opened(path, "a;b\n1,5;2\n"),
            "b.csv:1: the header 'a;b' has no commas; separate fields by commas"));
  CHECK(has(opened(path, "a\tb\n1\t2\n"),
            "has no commas; separate fields by commas, or by tabs in a .tsv file"));
  CHECK(has(opened(path, "a,b\r1,2\r"), "b.csv:1: lines end in a carriage return alone"));
  CHECK(opened(path, "\"a\r\nb\",c\r\n1,2\r\n").empty());
  example e;
  CHECK(has(failure([&] { csv_source{support::write(dir / "one.csv", "a\n1,2\n")}.open()->read(0, 0, e); }),
            "expected 1 field as in the header, found 2"));
  csv_source const s{support::write(path, "a,b\n1,2\n1\n1,2,3\n\"1\"x,2\n5,6\n")};
  CHECK(s.shards()[0].records == 5);
  CHECK(s.columns()[0].kind == example::kind::integers);
  auto const in = s.open();
  CHECK(failure([&] { in->read(0, 1, e); }) == path + ":3: expected 2 fields as in the header, found 1");
  CHECK(has(failure([&] { in->read(0, 2, e); }), "found 3"));
  CHECK(has(failure([&] { in->read(0, 3, e); }), "closing quote"));
  in->read(0, 4, e);
  CHECK(e.integer("b") == 6);
  std::filesystem::resize_file(path, 20);
  CHECK(has(failure([&] { in->read(0, 0, e); }), "has 20 bytes but had 27"));
}

TEST_CASE("CSV files damaged at random are errors or other rows") {
  support::scratch const dir;
  std::string const good = "id,age,job\n1,2.5,\"a \"\"b\"\",\nc\"\n-7,,x\r\n22,1e9,\"\"\n";
  int read = 0, refused = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    support::write_anew(dir / "m.csv", support::mutate(good, {8, i}));
    auto const why = failure([&] {
      csv_source const s{dir / "m.csv"};
      auto const in = s.open();
      example e;
      for (std::uint64_t n = 0; n < s.shards()[0].records; ++n) in->read(0, n, e), ++read;
    });
    refused += !why.empty();
  }
  CHECK(read > 3000);
  CHECK(refused > 1000);
}

TEST_CASE("a bad row is named by its line, also behind rows of several lines and empty ones") {
  support::scratch const dir;
  auto const path = dir / "l.csv";
  std::string text = "a,b\n";
  for (int i = 0; i < 300; ++i) text += i % 3 == 0 ? "1,\"x\ny\"\n" : i % 3 == 1 ? "\n2,z\n" : "3,z\n";
  std::uint64_t const line = 1 + std::uint64_t(std::count(text.begin(), text.end(), '\n'));
  csv_source const s{support::write(path, text + "4\n5,z\n6\n")};
  auto const in = s.open();
  example e;
  CHECK(
      has(failure([&] { in->read(0, 300, e); }), path + ":" + std::to_string(line) + ": expected 2 fields"));
  CHECK(has(failure([&] { in->read(0, 302, e); }), path + ":" + std::to_string(line + 2) + ": expected 2"));
  in->read(0, 301, e);
  CHECK(e.integer("a") == 5);
}

TEST_CASE("a header with more columns than a record can have is refused") {
  support::scratch const dir;
  auto const header = [](int columns) {
    std::string text = "c0";
    for (int i = 1; i < columns; ++i) text += ",c" + std::to_string(i);
    return text + "\n";
  };
  support::write(dir / "wide.csv", header(16'384));
  CHECK(csv_source(dir / "wide.csv").columns().size() == 16'384);
  support::write(dir / "wider.csv", header(16'385));
  CHECK(has(failure([&] { csv_source(dir / "wider.csv"); }), "at most 16384 are taken"));
}

TEST_CASE("a cell that makes a column of numbers a text is named once") {
  support::scratch const dir;
  std::string text = "age,name,few\n";
  for (int i = 0; i < 40; ++i)
    text += (i == 25 ? std::string("4o") : i == 30 ? std::string() : std::to_string(i)) + ",a,x\n";
  csv_source const s{support::write(dir / "a.csv", text)};
  CHECK(s.columns()[0].kind == example::kind::strings);
  REQUIRE(s.notes().size() == 1);
  CHECK(s.notes()[0] ==
        (dir / "a.csv") + ":27: '4o' makes column 'age' a text; 38 of its cells are numbers, 1 are not");
  // Only its own record lacks the number.
  auto const in = s.open();
  example e;
  in->read(0, 24, e);
  CHECK(e.bytes("age") == "24");
  CHECK(e.integer("age") == 24);
  CHECK(e.floating("age") == 24);
  CHECK(e.floats("age")[0] == 24);
  CHECK(
      has(failure([&] { e.floating("name"); }), "the record has not one number as feature 'name', but 'a'"));
  in->read(0, 25, e);
  CHECK(s.line_in_file(0, 25) == 27);
  for (auto const& why : {failure([&] { e.floating("age"); }), failure([&] { e.integer("age"); }),
                          failure([&] { e.floats("age"); })})
    CHECK(has(why, "as feature 'age', but '4o'; it has"));
  // An empty cell is missing as before.
  in->read(0, 30, e);
  CHECK_FALSE(e.contains("age"));
  CHECK(e.bytes("name") == "a");
}

TEST_CASE("words for what is missing count so in columns of numbers, and are told once") {
  support::scratch const dir;
  std::string text = "age,name,none,height\n";
  for (int i = 0; i < 40; ++i)
    text += (i == 3 || i == 7 ? std::string("NA") : std::to_string(i)) + (i == 5 ? ",NA" : ",a") + ",-," +
            (i == 9 ? "?" : "0.5") + "\n";
  csv_source const s{support::write(dir / "a.csv", text)};
  CHECK(s.columns()[0].kind == example::kind::integers);
  CHECK(s.columns()[3].kind == example::kind::floats);
  CHECK(s.notes().empty());
  CHECK(s.missing_note() == (dir / "a.csv") +
                                ":5: 'NA' in column 'age' of numbers counts as missing, as do 2 such cells "
                                "in all, and others in 1 more column; --missing lists the words that do");
  CHECK(edl::data::all_notes(s).size() == 1);
  auto const in = s.open();
  example e;
  in->read(0, 3, e);
  CHECK_FALSE(e.contains("age"));
  CHECK(e.bytes("none") == "-");  // a column of texts
  in->read(0, 5, e);
  CHECK(e.bytes("name") == "NA");
  CHECK(e.integer("age") == 5);
}

TEST_CASE("words that the user says count as empty cells in all columns, and no others do") {
  support::scratch const dir;
  auto const path =
      support::write(dir / "a.csv", "age,name,none,odd\n1,a,x y,-\nx y,x y,x y,2\n3, x y ,,3\n");
  auto const s = open_source(path, {.missing = edl::data::read_missing_words(" x y,nil")});
  auto const& columns = dynamic_cast<csv_source const&>(*s).columns();
  CHECK(columns[0].kind == example::kind::integers);
  CHECK(columns[2].kind == example::kind::none);
  CHECK(columns[3].kind == example::kind::strings);
  CHECK(edl::data::all_notes(*s).empty());
  auto const in = s->open();
  example e;
  in->read(0, 1, e);
  CHECK_FALSE(e.contains("age"));
  CHECK_FALSE(e.contains("none"));
  CHECK(e.bytes("name") == "");
  in->read(0, 2, e);
  CHECK(e.bytes("name") == "");
  auto const none = open_source(path, {.missing = edl::data::read_missing_words("")});
  none->open()->read(0, 1, e);
  CHECK(e.bytes("age") == "x y");
  CHECK_FALSE(edl::data::read_missing_words("auto"));
  auto const more = edl::data::read_missing_words("unknown,auto").value();
  CHECK(more.size() == 9);
  for (auto const& word : more) CHECK((word == "unknown" || edl::says_missing(word)));
  for (char const* const hollow : {",", "NA,", ",NA", "NA,,x", " "})
    CHECK(
        has(failure([&] { edl::data::read_missing_words(hollow); }),
            "--missing=" + std::string(hollow) + ": a word of the list is empty, and empty cells count as"));
}

TEST_CASE("blanks at the ends of a cell belong to no text, as they belong to no name of a column") {
  support::scratch const dir;
  auto const s =
      open_source(support::write(dir / "a.csv", " town ,no\nUlm ,1\n\" Ulm\t\",2\n  ,3\n\"Ulm\n\",4\n"));
  auto const in = s->open();
  example e;
  for (auto const& [record, text] : {std::pair{0, "Ulm"}, {1, "Ulm"}, {2, ""}, {3, "Ulm\n"}}) {
    in->read(0, std::uint64_t(record), e);
    CHECK(e.bytes("town") == text);
  }
}

TEST_CASE("a word that many numbers have for company is named, with the flag that makes it missing") {
  support::scratch const dir;
  std::string text = "size,größe\n", numbers = "size\n";
  for (int i = 0; i < 9; ++i) text += i % 3 == 2 ? "unknown,x\n" : "5,x\n", numbers += "5\n";
  auto const path = support::write(dir / "a.csv", text);
  auto const s = open_source(path);
  CHECK(edl::data::all_notes(*s) ==
        std::vector<std::string>{
            path + ":4: 'unknown' makes column 'size' a text; 6 of its cells are numbers, 3 are "
                   "this word: --missing=auto,unknown makes them missing"});
  example e;
  s->open()->read(0, 2, e);
  CHECK(
      has(failure([&] { e.floating("size"); }),
          "has not one number as feature 'size', but 'unknown'; it has size (1 byte strings), größe (1 byte "
          "strings); --missing=auto,unknown reads such cells of a table as missing"));
  // A column that others have as one of numbers.
  auto const known = std::make_shared<std::vector<edl::data::table_column>>();
  known->push_back({.name = "size", .kind = example::kind::floats});
  support::write(dir / "b.csv", numbers + "unknown\n");
  auto const b =
      open_source(dir / "b.csv", {.missing = edl::data::read_missing_words("nil"), .known = known});
  CHECK(dynamic_cast<csv_source const&>(*b).columns()[0].kind == example::kind::strings);
  auto const both = std::make_unique<csv_source>(
      dir / "b.csv",
      edl::data::csv_options{.columns = *known, .missing = edl::data::read_missing_words("nil")});
  CHECK(has(failure([&] { both->open()->read(0, 10, e); }),
            "expected a number in column 'size', found 'unknown': --missing=nil,unknown counts such cells as "
            "missing"));
}

TEST_CASE("a few rows of a table are read as the columns that a model was trained with") {
  support::scratch const dir;
  support::write(dir / "all.csv", "age,city,zip\n5,NA,a1\n7,b,\n");
  auto const path = support::write(dir / "one.csv", "age,city,zip\nNA,NA,12345\n");
  auto const as = [&](edl::data::source const& of, char const* said) {
    example e;
    of.open()->read(0, 0, e);
    CAPTURE(said);
    CHECK_FALSE(e.contains("age"));
    CHECK(e.bytes("city") == "NA");
    CHECK(e.bytes("zip") == "12345");
  };
  auto const all = open_source(dir / "all.csv");
  auto const known = std::make_shared<std::vector<edl::data::table_column>>(edl::data::columns_of(*all));
  auto const one = open_source(path, {.known = known});
  as(*one, "known");
  CHECK(has(one->missing_note(), "one.csv:2: 'NA' in column 'age' of numbers counts as missing"));
  // Of several files the others say it, whatever their order.
  for (char const* const list : {"/one.csv,", "/all.csv,"}) {
    auto const files =
        open_source(dir.path() + list + dir.path() + (list[1] == 'o' ? "/all.csv" : "/one.csv"));
    example e;
    files->open()->read(list[1] == 'o' ? 0 : 1, 0, e);
    CHECK_FALSE(e.contains("age"));
    CHECK(e.bytes("zip") == "12345");
    CHECK(columns_of(*files)[0].kind == example::kind::integers);
  }
  // By itself nobody knows, and its cells are what they are.
  example e;
  open_source(path)->open()->read(0, 0, e);
  CHECK(e.bytes("age") == "NA");
}

TEST_CASE("lines that are no UTF-8, and names that only look alike, are told with what differs") {
  support::scratch const dir;
  csv_source const s{support::write(dir / "a.csv", "city,x\nBerlin,1\nM\xFCnchen,2\nK\xF6ln,3\n")};
  REQUIRE(s.notes().size() == 1);
  CHECK(has(s.notes()[0], ":3: 'M\\xfcnchen,2' is not UTF-8 (2 such lines in all): "));
  example e;
  s.open()->read(0, 0, e);
  CHECK(has(failure([&] { e.bytes("City"); }), "; 'city' looks like 'City' and is another name"));
  using names = std::tuple<std::string, std::string, std::string>;
  for (auto const& [ours, theirs, spelled] :
       {names{"gr\xC3\xB6\xC3\x9Fzer", "gro\xCC\x88\xC3\x9Fzer", "gro\\xcc\\x88\\xc3\\x9fzer"},
        names{"age", "age\xC2\xA0", "age\\xc2\\xa0"}}) {
    support::write(dir / "b1.csv", ours + ",y\n1,2\n");
    support::write(dir / "b2.csv", theirs + ",y\n1,2\n");
    auto const why = failure([&] { open_source(dir / "b*.csv"); });
    CHECK(has(why, "looks like '" + spelled + "' and is another name"));
  }
  support::write(dir / "c1.csv", "one,y\n1,2\n");
  support::write(dir / "c2.csv", "two,y\n1,2\n");
  CHECK_FALSE(has(failure([&] { open_source(dir / "c*.csv"); }), "looks like"));
}

TEST_CASE("a header of numbers alone may be a record that lost its header") {
  support::scratch const dir;
  csv_source const s{support::write(dir / "a.csv", "\n5.1,3\n4.9,2\n")};
  REQUIRE(s.notes().size() == 1);
  CHECK(s.notes()[0] == (dir / "a.csv") +
                            ":2: the names of all columns are numbers; if this line is a record, write one "
                            "of names above it");
  CHECK(csv_source{support::write(dir / "b.csv", "2024,kind\n1,2\n")}.notes().empty());
}

TEST_CASE("tabs between fields, and packed files") {
  support::scratch const dir;
  std::string packed;
  detail::pack_gzip("a,b\n1,x\n2,y\n", packed);
  support::write(dir / "t.tsv", "a\tb c\n1\tx, y\n");
  support::write(dir / "p.csv.gz", packed);
  example e;
  open_source(dir / "t.tsv")->open()->read(0, 0, e);
  CHECK(e.integer("a") == 1);
  CHECK(e.bytes("b c") == "x, y");
  auto const s = open_source(dir / "p.csv.gz");
  CHECK(s->shards() == std::vector<shard>{{"p.csv.gz", 2}});
  s->open()->read(0, 1, e);
  CHECK(e.bytes("b") == "y");
}

}  // namespace csv_test

namespace libfm_test {

using edl::data::libfm_source;

TEST_CASE("a row is a label, ids and weights") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "train.libfm", "1 451:1 4149:0.5\r\n\n# a comment\n-1\n +2.5\t7:-1e3  ");
  auto const source = edl::data::open_source(path);
  REQUIRE(source->shards() == std::vector<edl::data::shard>{{"train.libfm", 3}});
  auto const reader = source->open();
  edl::example row;
  reader->read(0, 0, row);
  CHECK(row.floating("label") == 1);
  CHECK(std::ranges::equal(row.integer_values("ids"), std::vector<std::int64_t>{451, 4149}));
  CHECK(std::ranges::equal(row.float_values("weights"), std::vector<float>{1, 0.5f}));
  reader->read(0, 1, row);
  CHECK(row.floating("label") == -1);
  CHECK(row.count("ids") == 0);
  reader->read(0, 2, row);
  CHECK(row.floating("label") == 2.5f);
  CHECK(row.float_values("weights")[0] == -1000);
  CHECK_THROWS_AS(reader->read(0, 3, row), edl::data_error);
}

TEST_CASE("what the options say a file is comes before its name") {
  support::scratch const dir;
  std::string const path = support::write(dir / "a.csv", "1 2:3\n0 1:1\n");
  CHECK(edl::data::records(*edl::data::open_source(path, {.as = edl::data::format::libfm})) == 2);
}

TEST_CASE("a row that is none is told with its line and column") {
  support::scratch const dir;
  std::string const path =
      support::write(dir / "a", "\n1 2:3\nx 1:1\n1 -4:1\n1 5\n1 5:\n1 5:1x\n1 99999999999999999999:1\n");
  libfm_source const source(path);
  auto const reader = source.open();
  edl::example row;
  reader->read(0, 0, row);
  std::vector<std::string> said;
  for (std::uint64_t i = 1; i < 7; ++i) try {
      reader->read(0, i, row);
    } catch (edl::data_error const& e) {
      said.push_back(std::string(e.what()).substr(path.size()));
    }
  CHECK(said == std::vector<std::string>{":3:1: expected a label", ":4:5: expected an id of at least 0",
                                         ":5:4: expected ':' and a weight", ":6:5: expected a weight",
                                         ":7:6: expected a blank", ":8:3: expected an id"});
}

TEST_CASE("a file without rows is refused, and other content has another digest") {
  support::scratch const dir;
  CHECK_THROWS_AS(libfm_source(support::write(dir / "none", "\n\n")), edl::data_error);
  auto const of = [&](char const* text) { return libfm_source(support::write(dir / "a", text)).digest(0); };
  CHECK(of("1 2:3") != of("1 2:4"));
}

}  // namespace libfm_test

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
