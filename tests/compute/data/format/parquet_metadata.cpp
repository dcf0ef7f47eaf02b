// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/parquet_metadata.hpp"

#include <doctest/doctest.h>

#include "compute/data/format/parquet_file.hpp"
#include "compute/data/support.hpp"

namespace thrift_test {

using namespace edl::data::detail;
using parquet_file::compact;
using support::failure, support::from_hex, support::has;

TEST_CASE("numbers come off the front of bytes") {
  std::string const bytes = from_hex("01020304ac02acff");
  byte_cursor at(bytes);
  CHECK(at.number<std::uint32_t>() == 0x04030201);
  CHECK(at.varint() == 300);
  CHECK(at.offset() == 6);
  CHECK(failure([&] { at.varint(); }) == "expected 1 bytes at byte 8, found 0");
  std::string const negative = from_hex("05"), long_one(11, '\xff');
  CHECK(byte_cursor(negative).zigzag() == -3);
  CHECK(has(failure([&] { byte_cursor(long_one).varint(); }), "more than 64 bits"));
  CHECK(failure([&] { byte_cursor(bytes).take(9); }) == "expected 9 bytes at byte 0, found 8");
}

TEST_CASE("fields are taken or passed over, whatever they are") {
  compact inner, of;
  inner.number(1, -5).text(2, "passed over").list(20, {compact().number(1, 1)});
  of.structure(1, inner).flag(2, true).number(3, 300, 5).text(9, "name").structure(12, inner);
  std::string const bytes = of.bytes + '\0';
  thrift_reader in(bytes);
  int n = 0;
  std::string text;
  bool flag = false;
  in.fields([&](std::int64_t id, thrift_reader::type what) {
    if (id == 2) return in.flag(what, flag);
    if (id == 3) return in.number(what, n);
    return id == 9 && in.text(what, text);
  });
  CHECK(flag);
  CHECK(n == 300);
  CHECK(text == "name");
  CHECK(in.offset() == bytes.size());
}

TEST_CASE("a struct that cannot be is refused before anything is believed") {
  auto const refused = [](std::string const& bytes) {
    return failure([&] {
      thrift_reader in(bytes);
      int n = 0;
      in.fields([&](std::int64_t id, thrift_reader::type what) {
        if (id == 2) in.structs(what, [] {});
        return id == 2 || (id == 1 && in.number(what, n));
      });
    });
  };
  CHECK(has(refused(compact().number(1, -1).bytes + '\0'), "has the value -1 at byte"));
  CHECK(has(refused(compact().number(1, std::int64_t{1} << 40).bytes + '\0'), "has the value 1099511627776"));
  CHECK(has(refused(compact().text(1, "a").bytes + '\0'), "expected type 6"));
  CHECK(has(refused(from_hex("29fcffffffff0f")), "elements of a list"));
  CHECK(has(refused(from_hex("3bffffffff0f")), "elements of a map"));
  CHECK(has(refused(from_hex("03feffffffffffffffff01"
                             "00"
                             "13")),
            "has field number 9223372036854775807"));
  CHECK(has(refused(from_hex("3e00")), "unknown type 14"));
  CHECK(has(refused(std::string(1000, '\x3c')), "too many structs in one another"));
  CHECK(has(refused(std::string("\x39") + std::string(1000, '\x19')), "too many lists in one another"));
  CHECK(has(refused(""), "expected 1 bytes"));
}

}  // namespace thrift_test

namespace parquet_metadata_test {

using namespace edl::data::detail;
using parquet_file::compact, parquet_file::node;
using support::failure, support::has;

namespace {

parquet_metadata of(std::vector<compact> nodes) {
  std::int64_t const children = std::int64_t(nodes.size());
  nodes.insert(nodes.begin(), compact().text(4, "root").number(5, children, 5));
  return parse_parquet_metadata(compact().list(2, nodes).number(3, 0).list(4, {}).bytes + '\0', 4);
}

/// With groups: `nodes` begin with the root.
parquet_metadata tree(std::vector<compact> const& nodes) {
  return parse_parquet_metadata(compact().list(2, nodes).number(3, 0).list(4, {}).bytes + '\0', 4);
}

compact group(std::string_view name, int children, int repetition = 0, int converted = -1) {
  compact g;
  g.number(3, repetition, 5).text(4, name).number(5, children, 5);
  return converted < 0 ? g : g.number(6, converted, 5);
}

}  // namespace

TEST_CASE("logical types are the same in older and in newer terms") {
  auto const older = of({node("a", 1).number(6, 6, 5), node("b", 2).number(6, 10, 5),
                         node("c", 1).number(6, 13, 5), node("d", 2).number(6, 5, 5).number(7, 2, 5)});
  auto const micros = compact().flag(1, false).structure(2, compact().structure(2, {}));
  auto const newer =
      of({node("a", 1).structure(10, compact().structure(6, {})),
          node("b", 2).structure(10, compact().structure(8, micros)),
          node("c", 1).structure(10, compact().structure(10, compact().number(1, 0, 5).flag(2, false))),
          node("d", 2).structure(10, compact().structure(5, compact().number(1, 2, 5).number(2, 9, 5)))});
  REQUIRE(older.columns.size() == 4);
  CHECK(older.columns == newer.columns);
  CHECK(older.columns[0].meaning == parquet_meaning::date);
  CHECK(older.columns[1].digits == 6);
  CHECK(older.columns[2].meaning == parquet_meaning::is_unsigned);
  CHECK(older.columns[3].digits == 2);
}

TEST_CASE("columns of objects and lists are named as in JSON, and deeper ones are left out") {
  // o.a; l: list<int32>; r: repeated; ll: list<list>; m: map; lo: list of objects
  auto const m = tree({group("root", 6),
                       group("o", 1, 1),
                       node("a", 1, 1),  //
                       group("l", 1, 1, 3),
                       group("list", 1, 2),
                       node("element", 1, 1),  //
                       node("r", 5, 2),        //
                       group("ll", 1, 1, 3),
                       group("list", 1, 2),
                       group("element", 1, 1, 3),  //
                       group("list", 1, 2),
                       node("element", 1, 1),  //
                       group("m", 1, 1, 1),
                       group("key_value", 2, 2),
                       node("key", 6),
                       node("value", 1, 1),  //
                       group("lo", 1, 1, 3),
                       group("list", 1, 2),
                       group("element", 2, 1),
                       node("x", 1),
                       node("y", 1)});
  REQUIRE(m.columns.size() == 3);
  CHECK(m.columns[0].name == "o.a");
  CHECK(m.columns[0].most_definition == 2);
  CHECK(m.columns[0].list_definition == 0);
  CHECK(m.columns[1].name == "l");
  CHECK(m.columns[1].most_definition == 3);
  CHECK(m.columns[1].list_definition == 2);
  CHECK(m.columns[2].name == "r");
  CHECK(m.columns[2].list_definition == 1);
  CHECK(m.columns[2].leaf == 2);
  CHECK(m.notes == std::vector<std::string>{"column 'll' is left out: it is a list of lists",
                                            "column 'm.key' is left out: it is a map",
                                            "column 'm.value' is left out: it is a map",
                                            "column 'lo.x' is left out: it is a list of objects",
                                            "column 'lo.y' is left out: it is a list of objects"});
}

TEST_CASE("a type that is not read is left out with a reason") {
  auto const m = of(
      {node("interval", 7).number(6, 21, 5), node("date", 5).number(6, 6, 5), node("new", 9), node("x", 1)});
  CHECK(m.columns.size() == 1);
  REQUIRE(m.notes.size() == 3);
  CHECK(has(m.notes[1], "column 'date' is left out: its logical type does not go with its physical type"));
  CHECK(has(m.notes[2], "its type is unknown"));
}

TEST_CASE("metadata that cannot be is refused") {
  CHECK(has(failure([] { of({node("x", 1), node("x", 2)}); }), "two columns have the name 'x'"));
  CHECK(has(failure([] { tree({}); }), "its schema is empty"));
  CHECK(has(failure([] { tree({group("root", 3), node("x", 1)}); }), "ends within a group"));
  CHECK(has(failure([] { tree({group("root", 1), node("x", 1), node("y", 1)}); }), "belong to none"));
  std::vector<compact> deep{group("root", 1)};
  for (int i = 0; i < 40; ++i) deep.push_back(group("g", 1));
  CHECK(has(failure([&] { tree(deep); }), "too many groups"));
  auto const with = [](compact const& chunk, std::int64_t rows, std::int64_t all) {
    auto const g = compact().list(1, {chunk}).number(3, rows);
    return failure([&] {
      parse_parquet_metadata(
          compact().list(2, {group("root", 1), node("x", 1)}).number(3, all).list(4, {g}).bytes + '\0', 100);
    });
  };
  auto const chunk = [](std::int64_t values, std::int64_t size, std::int64_t begin) {
    return compact().structure(3,
                               compact().number(4, 0, 5).number(5, values).number(7, size).number(9, begin));
  };
  CHECK(with(chunk(5, 90, 4), 5, 5).empty());
  CHECK(has(with(chunk(4, 90, 4), 5, 5), "row group 0, column 'x': claims 4 values for 5 rows"));
  CHECK(has(with(chunk(5, 97, 4), 5, 5), "lie in [4, 4 + 97)"));
  CHECK(has(with(chunk(5, 9, 3), 5, 5), "lie in [3, 3 + 9)"));
  CHECK(has(with(chunk(5, 90, 4), 5, 6), "claims 6 rows, but its row groups have 5 together"));
  CHECK(has(with(compact().structure(3, {}).structure(8, {}), 5, 5), "encrypted"));
  CHECK(has(with(compact().text(1, "a").structure(3, {}), 5, 5), "other files"));
  CHECK(has(with({}, 5, 5), "has no pages"));
}

TEST_CASE("names and nodes of a schema are bounded") {
  CHECK(of({node(std::string(4096, 'n'), 1)}).columns[0].name.size() == 4096);
  CHECK(has(failure([] { of({node(std::string(4097, 'n'), 1)}); }), "has more than 4096 bytes"));
  CHECK(has(failure([] {
              tree({group("root", 1), group(std::string(4000, 'g'), 1), node(std::string(96, 'n'), 1)});
            }),
            "has more than 4096 bytes"));
  CHECK(has(failure([] { of(std::vector<compact>(16'384 * 32 + 1, node("n", 1))); }),
            "more than 16384 columns"));
}

}  // namespace parquet_metadata_test
