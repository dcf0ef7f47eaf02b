// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/parquet_value.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compute/data/format/parquet_file.hpp"

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
