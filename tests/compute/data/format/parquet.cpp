// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/parquet.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compute/data/format/parquet_file.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/table.hpp"
#include "edl/compute/data/source.hpp"

namespace parquet_value_test {

using namespace edl::data::detail;
using kind = edl::example::kind;
using enum parquet_type;
using enum parquet_meaning;

namespace {

parquet_values whole(std::int64_t n) {
  parquet_values v;
  v.integers = {n};
  return v;
}

parquet_values stored(std::string const& bytes) {
  parquet_values v;
  v.bytes = bytes;
  v.ends = {bytes.size()};
  return v;
}

parquet_column column(parquet_type type, parquet_meaning meaning, int digits = 0, bool utc = false) {
  parquet_column c;
  c.type = type, c.meaning = meaning, c.digits = digits, c.utc = utc;
  return c;
}

std::string text(parquet_column const& c, parquet_values const& v) {
  std::string scratch;
  return std::string(text_at(c, v, 0, scratch));
}

}  // namespace

TEST_CASE("decimals are exact as texts, and rounded once as numbers") {
  auto const d = column(fixed_bytes, decimal, 2);
  CHECK(kind_of(d) == kind::floats);
  CHECK(text(d, stored(std::string("\0\0\x04\xd2", 4))) == "12.34");
  CHECK(text(d, stored("\xff\xfb")) == "-0.05");
  CHECK(text(d, stored("")) == "0.00");
  CHECK(number_at(d, stored("\xff\xfb"), 0) == -0.05);
  CHECK(text(column(int64, decimal, 3), whole(std::numeric_limits<std::int64_t>::min())) ==
        "-9223372036854775.808");
  CHECK(number_at(column(int64, decimal, 3), whole(9'007'199'254'740'993), 0) == 9'007'199'254'740.993);
  // 2^127 - 1, in sixteen bytes.
  std::string const most = "\x7f" + std::string(15, '\xff');
  CHECK(text(column(fixed_bytes, decimal, 38), stored(most)) == "1.70141183460469231731687303715884105727");
  CHECK(number_at(column(fixed_bytes, decimal, 38), stored(most), 0) == 1.7014118346046923);
  auto const large = column(fixed_bytes, decimal);
  CHECK(kind_of(large) == kind::integers);
  CHECK(may_be_too_large(large));
  CHECK(!integer_at(large, stored(most), 0));
  CHECK(integer_at(large, stored(std::string(9, '\xff')), 0) == -1);
  CHECK(integer_at(large, stored(std::string(8, '\0') + "\x80"), 0) == 128);
  CHECK(!integer_at(large, stored(std::string("\0\x80\0\0\0\0\0\0\0", 9)), 0));
}

TEST_CASE("unsigned numbers keep their values") {
  CHECK(integer_at(column(int32, is_unsigned), whole(-1), 0) == 4294967295);
  CHECK(!may_be_too_large(column(int32, is_unsigned)));
  CHECK(!integer_at(column(int64, is_unsigned), whole(-1), 0));
  CHECK(text(column(int64, is_unsigned), whole(-1)) == "18446744073709551615");
  CHECK(number_at(column(int64, is_unsigned), whole(-1), 0) == 18446744073709551615.0);
}

TEST_CASE("days and times are texts as the date feature reads them") {
  CHECK(text(column(int32, date), whole(0)) == "1970-01-01");
  CHECK(text(column(int32, date), whole(-1)) == "1969-12-31");
  CHECK(text(column(int32, date), whole(11016)) == "2000-02-29");
  CHECK(text(column(int32, date), whole(-719528)) == "0000-01-01");
  CHECK(text(column(int64, timestamp, 3), whole(-1)) == "1969-12-31 23:59:59.999");
  CHECK(text(column(int64, timestamp, 6, true), whole(86'400'500'000)) == "1970-01-02 00:00:00.5Z");
  CHECK(text(column(int64, timestamp, 9), whole(std::numeric_limits<std::int64_t>::min())) ==
        "1677-09-21 00:12:43.145224192");
  CHECK(text(column(int32, parquet_meaning::time, 3), whole(54'245'250)) == "15:04:05.25");
  // INT96: nanoseconds, then the day by Julius.
  CHECK(text(column(int96, timestamp, 9),
             stored(parquet_file::raw(std::int64_t{54'245'000'000'000}, std::uint32_t{2'440'589}))) ==
        "1970-01-02 15:04:05");
}

TEST_CASE("a time that no day has is an error, before the first and after the last") {
  auto const time = column(int32, parquet_meaning::time, 3);
  CHECK(text(time, whole(86'399'999)) == "23:59:59.999");
  for (std::int64_t const n : {-1, 86'400'000})
    CHECK(complaint([&] { text(time, whole(n)); }) ==
          "expected a time of the day, found " + std::to_string(n) + " units of 1e-3 s");
  for (std::int64_t const n : {std::int64_t{-1}, std::int64_t{86'400'000'000'000}})
    CHECK(contains(complaint([&] {
                     text(column(int96, timestamp, 9),
                          stored(parquet_file::raw(n, std::uint32_t{2'440'589})));
                   }),
                   "expected a time of the day"));
}

TEST_CASE("halves are the numbers that IEEE 754 says") {
  auto const half = column(fixed_bytes, float16);
  auto const of = [&](unsigned bits) {
    return number_at(half, stored(parquet_file::raw(std::uint16_t(bits))), 0);
  };
  CHECK(of(0x3c00) == 1);
  CHECK(of(0xc500) == -5);
  CHECK(of(0x7bff) == 65504);
  CHECK(of(0x0001) == std::ldexp(1.0, -24));
  CHECK(std::signbit(of(0x8000)));
  CHECK(std::isinf(of(0x7c00)));
  CHECK(std::isnan(of(0x7e00)));
}

TEST_CASE("fractions are as short as they can be in their own width") {
  parquet_values v;
  v.floats = {0.1f};
  CHECK(text(column(float32, as_stored), v) == "0.1");
  v.floats = {0.1};
  CHECK(text(column(float64, as_stored), v) == "0.1");
  CHECK(text(column(fixed_bytes, uuid), stored("0123456789abcdef")) ==
        "30313233-3435-3637-3839-616263646566");
  CHECK(kind_of(column(boolean, as_stored)) == kind::integers);
  CHECK(kind_of(column(bytes, as_stored)) == kind::strings);
  CHECK(kind_of(column(int32, date)) == kind::strings);
}

}  // namespace parquet_value_test

namespace parquet_test {

using namespace edl::data;
using edl::example;
using kind = example::kind;
using parquet_file::compact, parquet_file::node, parquet_file::page, parquet_file::raw;
using support::failure, support::from_hex, support::has, support::scratch;

namespace {

std::string given(std::string const& name) { return EDL_PARQUET "/" + name; }

/// All records, serialised; or the first error.
std::vector<std::string> all_of(source const& s) {
  std::vector<std::string> all;
  auto const in = s.open();
  example e;
  for (std::uint64_t i = 0; i < s.shards()[0].records; ++i) {
    in->read(0, i, e);
    encode(e, all.emplace_back());
  }
  return all;
}

/// One column of integers in two row groups: 1, 2, 3, then 4, 5.
std::string two_groups(bool checksum = false) {
  return parquet_file::file(
      {{node("x", 1), {page(raw(1, 2, 3), 3, 0, checksum), page(raw(4, 5), 2, 0, checksum)}, {3, 2}}},
      {3, 2});
}

std::vector<float> floats(example const& e, std::string_view name) {
  auto const v = e.float_values(name);
  return {v.begin(), v.end()};
}

}  // namespace

TEST_CASE("files of other programs have the values that were written") {
  for (char const* const name : {"duckdb-snappy", "duckdb-delta-zstd", "wasm-v2-lz4", "wasm-split-gzip"}) {
    CAPTURE(name);
    auto const s = open_source(given(name) + ".parquet");
    REQUIRE(s->shards() == std::vector<shard>{{std::string(name) + ".parquet", 3}});
    auto const in = s->open();
    example e;
    in->read(0, 0, e);
    CHECK(e.size() == 28);
    for (auto const& [column, value] :
         std::map<std::string, std::int64_t>{{"yes", 1},
                                             {"i8", -128},
                                             {"i32", -2147483648},
                                             {"i64", std::numeric_limits<std::int64_t>::min()},
                                             {"u8", 255},
                                             {"u32", 4294967295},
                                             {"d0", 42},
                                             {"place.x", 1}})
      CHECK_MESSAGE(e.integer(column) == value, column);
    for (auto const& [column, value] : std::map<std::string, float>{
             {"f32", 0.1f}, {"f64", 0.1f}, {"d4", -1.5f}, {"d18", -1.5f}, {"d38", -1.5f}})
      CHECK_MESSAGE(e.floating(column) == value, column);
    for (auto const& [column, value] :
         std::map<std::string, std::string>{{"u64", "18446744073709551615"},
                                            {"text", "Z\xc3\xbcrich, \"north\""},
                                            {"number", "12"},
                                            {"day", "2026-11-28"},
                                            {"ms", "2026-11-28 15:04:05.25"},
                                            {"us", "2026-11-28 15:04:05.000006"},
                                            {"ns", "2026-11-28 15:04:05.000000007"},
                                            {"utc", "2026-11-28 15:04:05Z"},
                                            {"clock", "15:04:05.5"},
                                            {"raw", std::string("\0\xff", 2)},
                                            {"place.y", "n"}})
      CHECK_MESSAGE(e.bytes(column) == value, column);
    CHECK(e.integer("number") == 12);  // as the cell's own text says
    CHECK(std::ranges::equal(e.integer_values("numbers"), std::vector<std::int64_t>{1, 2, 3}));
    CHECK(floats(e, "halves") == std::vector{0.5f, 1.5f});
    CHECK(e.bytes("words", 1) == "b");
    in->read(0, 1, e);
    for (char const* const lacking :
         {"yes", "i64", "f64", "d38", "d0", "numbers", "halves", "words", "place.x"})
      CHECK_MESSAGE(!e.contains(lacking), lacking);
    CHECK(e.bytes("text").empty());
    CHECK(e.bytes("day").empty());
    in->read(0, 2, e);
    CHECK(e.integer("i64") == std::numeric_limits<std::int64_t>::max());
    CHECK(e.floating("d38") == 123456789012345678901234567890.12345f);
    CHECK(e.floating("f64") == 3);
    CHECK(e.integer("f64") == 3);
    CHECK(e.bytes("u64") == "3");
    CHECK(e.bytes("ns") == "1969-12-31 23:59:59.5");
    CHECK(e.count("numbers") == 0);
    CHECK(e.contains("numbers"));
    CHECK(e.bytes("words", 0).empty());
    CHECK(s->notes().size() == 1);
    CHECK(has(s->notes()[0], "18446744073709551615 does not fit"));
  }
  auto const s = open_source(given("hyparquet.parquet"));
  auto const in = s->open();
  example e;
  in->read(0, 3, e);
  CHECK(e.floating("half") == 65504);
  CHECK(e.bytes("text") == "helping");
  CHECK(e.integer("label") == 1);
  in->read(0, 1, e);
  CHECK(!e.contains("half"));
  CHECK(e.bytes("text") == "help");
}

TEST_CASE("a Parquet file and a CSV file of one table are the same records") {
  scratch const dir;
  support::write(
      dir / "t.parquet",
      parquet_file::file(
          {{node("x", 1, 1), {parquet_file::page(parquet_file::levels({1, 0, 1}) + raw(4, -5), 3)}, {3}},
           {node("r", 5), {page(raw(1.5, 0.25, 1e9), 3)}, {3}},
           {node("w", 6), {page(raw(1u) + "a" + raw(0u) + raw(2u) + "bc", 3)}, {3}}},
          {3}));
  support::write(dir / "t.csv", "x,r,w\n4,1.5,a\n,0.25,\n-5,1000000000.0,bc\n");
  auto const csv = open_source(dir / "t.csv"), parquet = open_source(dir / "t.parquet");
  CHECK(all_of(*csv) == all_of(*parquet));
  CHECK(csv->features() == parquet->features());
  CHECK(dynamic_cast<table&>(*csv).columns() == dynamic_cast<table&>(*parquet).columns());
}

TEST_CASE("rows are read in any order, with hardly any memory, from the row group they are in") {
  scratch const dir;
  support::write(dir / "x.parquet", two_groups());
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    parquet_source const s(dir / "x.parquet", {.cache_bytes = bytes});
    auto const in = s.open();
    example e;
    for (int const i : {4, 0, 3, 2, 1, 4, 0}) {
      in->read(0, std::uint64_t(i), e);
      CHECK(e.integer("x") == i + 1);
    }
    CHECK(has(failure([&] { in->read(0, 5, e); }), "no row 5: the file has 5"));
    CHECK(has(failure([&] { in->read(1, 0, e); }), "no row 0"));
  }
  // What is wrong with one group's pages is no matter to the other's rows.
  std::string bytes = two_groups(true);
  auto const at = bytes.find(raw(4, 5));
  REQUIRE(at != bytes.npos);
  bytes[at] = 9;
  parquet_source const damaged(support::write_anew(dir / "x.parquet", bytes));
  auto const in = damaged.open();
  example e;
  in->read(0, 2, e);
  CHECK(e.integer("x") == 3);
  auto const why = failure([&] { in->read(0, 3, e); });
  CHECK(has(why, "x.parquet: row group 1, column 'x', page at byte "));
  CHECK(has(why, ": has checksum 0x"));
}

TEST_CASE("a row of a list may go on in the next pages") {
  // [1, 2, 3, 4], [5], of which the second page has 3 alone.
  auto const part = [](std::vector<int> const& begins, std::string const& values) {
    std::vector<int> const there(begins.size(), 1);
    std::vector<int> repetition;
    for (int const b : begins) repetition.push_back(1 - b);
    return page(parquet_file::levels(repetition) + parquet_file::levels(there) + values, int(begins.size()));
  };
  scratch const dir;
  auto const file = [&](std::string const& pages) {
    return support::write_anew(dir / "l.parquet", parquet_file::file({{node("l", 4, 2), {pages}, {5}}}, {2}));
  };
  parquet_source const s(
      file(part({1, 0}, raw(1.f, 2.f)) + part({0}, raw(3.f)) + part({0, 1}, raw(4.f, 5.f))),
      {.cache_bytes = 0});
  auto const in = s.open();
  example e;
  in->read(0, 1, e);
  CHECK(floats(e, "l") == std::vector{5.f});
  in->read(0, 0, e);
  CHECK(floats(e, "l") == std::vector{1.f, 2.f, 3.f, 4.f});
  parquet_source const wrong(file(part({0, 0, 0, 1, 1}, raw(1.f, 2.f, 3.f, 4.f, 5.f))));
  CHECK(has(failure([&] { wrong.open()->read(0, 0, e); }), "continues a row, but no row precedes it"));
}

TEST_CASE("a null in a list damages its record") {
  auto const list = compact().number(3, 1, 5).text(4, "l").number(5, 1, 5).number(6, 3, 5);
  auto const middle = compact().number(3, 2, 5).text(4, "list").number(5, 1, 5);
  // [7], [null]: levels 3 and 2 in two bits.
  std::string const body = parquet_file::levels({0, 0}) + raw(2u) + from_hex("030b") + raw(7);
  scratch const dir;
  parquet_source const s(support::write(
      dir / "l.parquet",
      parquet_file::file({{{}, {page(body, 2)}, {2}}}, {2},
                         {compact().text(4, "root").number(5, 1, 5), list, middle, node("element", 1, 1)})));
  example e;
  s.open()->read(0, 0, e);
  CHECK(e.integer("l") == 7);
  CHECK(has(failure([&] { s.open()->read(0, 1, e); }),
            "l.parquet: expected a value in the list in column 'l', found null"));
}

TEST_CASE("a column takes the kind that it has elsewhere, and --missing says what counts as empty") {
  scratch const dir;
  support::write(dir / "x.parquet", two_groups());
  support::write(dir / "x.csv", "x\nmany\n");
  example e;
  auto const both = open_source((dir / "x.parquet") + "," + (dir / "x.csv"));
  both->open()->read(0, 1, e);
  CHECK(e.bytes("x") == "2");
  CHECK(e.integer("x") == 2);
  auto const known =
      std::make_shared<std::vector<table_column> const>(std::vector<table_column>{{"x", kind::floats}});
  parquet_source(dir / "x.parquet", {.known = known}).open()->read(0, 1, e);
  CHECK(e.kind_of(0) == kind::floats);
  CHECK(e.integer("x") == 2);
  parquet_source const words(dir / "x.parquet", {.missing = missing_words{{"2", "9"}}});
  words.open()->read(0, 1, e);
  CHECK(!e.contains("x"));
  words.open()->read(0, 2, e);
  CHECK(e.integer("x") == 3);
  support::write(dir / "y.csv", "x,y\n1,2\n");
  CHECK(has(failure([&] { open_source((dir / "y.csv") + "," + (dir / "x.parquet")); }),
            "x.parquet: lacks the column 'y'"));
}

TEST_CASE("what is not read is refused by name") {
  scratch const dir;
  auto const refused = [&](std::string const& bytes) {
    return failure([&] { all_of(*open_source(support::write_anew(dir / "x.parquet", bytes))); });
  };
  CHECK(has(refused("PAR1"), "x.parquet: is too short"));
  CHECK(has(refused(std::string(50, 'x')), "does not end as a Parquet file"));
  CHECK(has(refused("PAR1" + std::string(50, 'x') + "PARE"), "is encrypted"));
  CHECK(has(refused("PAR1" + raw(0xffffffffu) + "PAR1"), "claims 4294967295 bytes of metadata"));
  CHECK(has(refused(parquet_file::file({{node("x", 1), {""}, {0}}}, {0})), "holds no records"));
  auto const interval = compact().number(1, 7, 5).number(2, 12, 5).text(4, "x").number(6, 21, 5);
  CHECK(has(refused(parquet_file::file({{interval, {""}, {0}}}, {0})),
            "has no column that is read; column 'x' is left out: it is an interval"));
  CHECK(has(refused(parquet_file::file({{node("x", 1), {page(raw(1), 1)}, {1}, 4}}, {1})),
            "row group 0, column 'x', page at byte 4: is compressed by Brotli, which is not read; write it"));
  CHECK(has(refused(parquet_file::file({{node("x", 1), {page(raw(1), 1)}, {2}}}, {2})),
            "hold 1 values of 1 rows, but the metadata gives 2 of 2"));
  CHECK(has(refused(parquet_file::file({{node("x", 1), {page(raw(1, 2, 3), 3)}, {2}}}, {2})),
            "claims 3 values, but the column has only 2 more"));
  CHECK(has(
      refused(parquet_file::file(
          {{node("x", 1), {parquet_file::dictionary(raw(1), 1) + parquet_file::dictionary(raw(1), 1)}, {1}}},
          {1})),
      "is a second dictionary"));
  CHECK(has(refused(parquet_file::file({{node("x", 1), {page(raw(1), 1).substr(0, 20)}, {1}}}, {1})),
            "page at byte 4: "));
}

TEST_CASE("a file is another when a value is, and is not read on when it was changed") {
  scratch const dir;
  std::string const path = support::write(dir / "x.parquet", two_groups());
  auto const before = parquet_source(path).digest(0);
  CHECK(before == parquet_source(path).digest(0));
  CHECK(parquet_source(path).digest(1) == 0);
  parquet_source const s(path);
  std::string bytes = two_groups();
  bytes[bytes.find(raw(4, 5))] = 9;
  support::write(path, bytes + "more");
  example e;
  CHECK(has(failure([&] { s.open()->read(0, 0, e); }), "x.parquet: has "));
  support::write(path, bytes);
  CHECK(parquet_source(path).digest(0) != before);
}

TEST_CASE("a damaged file is an error or has records, whichever byte is wrong and wherever it is cut") {
  scratch const dir;
  std::string const whole = support::read(given("hyparquet.parquet"));
  auto const read_all = [&](std::string const& bytes) {
    std::string const path = support::write_anew(dir / "x.parquet", bytes);
    return failure([&] { all_of(*open_source(path)); });
  };
  CHECK(read_all(whole).empty());
  std::size_t refused = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) refused += read_all(whole.substr(0, n)).empty() ? 0 : 1;
  CHECK(refused == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int const mask : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[i] = char(bytes[i] ^ mask);
      auto const why = read_all(bytes);
      CHECK((why.empty() || has(why, "x.parquet")));
    }
}

}  // namespace parquet_test
