// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/thrift.hpp"

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
  CHECK(has(refused(compact().number(1, -1).bytes + '\0'), "says -1 at byte"));
  CHECK(has(refused(compact().number(1, std::int64_t{1} << 40).bytes + '\0'), "says 1099511627776"));
  CHECK(has(refused(compact().text(1, "a").bytes + '\0'), "expected type 6"));
  CHECK(has(refused(from_hex("29fcffffffff0f")), "elements of a list"));
  CHECK(has(refused(from_hex("3bffffffff0f")), "elements of a map"));
  CHECK(has(refused(from_hex("03feffffffffffffffff01"
                             "00"
                             "13")),
            "says field 9223372036854775807"));
  CHECK(has(refused(from_hex("3e00")), "unknown type 14"));
  CHECK(has(refused(std::string(1000, '\x3c')), "too many structs in one another"));
  CHECK(has(refused(std::string("\x39") + std::string(1000, '\x19')), "too many lists in one another"));
  CHECK(has(refused(""), "expected 1 bytes"));
}

}  // namespace thrift_test
