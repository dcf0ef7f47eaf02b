// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/parquet_page.hpp"

#include <doctest/doctest.h>

#include "compute/data/format/parquet_file.hpp"
#include "compute/data/support.hpp"

namespace parquet_page_test {

using namespace edl::data::detail;
using parquet_file::raw;
using support::failure, support::from_hex, support::has;

namespace {

std::vector<std::uint32_t> runs(std::string const& hex, unsigned width, std::size_t count) {
  std::string const bytes = from_hex(hex);
  byte_cursor at(bytes);
  std::vector<std::uint32_t> all;
  read_parquet_runs(at, width, count, all);
  return all;
}

std::vector<std::int64_t> deltas(std::string const& hex, std::size_t count) {
  std::string const bytes = from_hex(hex);
  byte_cursor at(bytes);
  std::vector<std::int64_t> all;
  read_parquet_deltas(at, count, all);
  return all;
}

parquet_column column(parquet_type type, std::uint32_t definition = 0, std::uint32_t list = 0) {
  parquet_column c;
  c.type = type, c.most_definition = definition, c.list_definition = list;
  return c;
}

parquet_page read(parquet_column const& c, std::string const& body, std::uint32_t values,
                  parquet_encoding encoding, std::shared_ptr<parquet_values const> const& dictionary = {},
                  parquet_encoding levels = parquet_encoding::rle) {
  parquet_page_header h;
  h.type = parquet_page_header::kind::data;
  h.size = h.unpacked = std::uint32_t(body.size());
  h.values = values;
  h.encoding = encoding;
  h.definition = h.repetition = levels;
  return read_parquet_page(c, parquet_codec::none, h, body, dictionary);
}

}  // namespace

TEST_CASE("runs and packed bits are read as Encodings.md shows them") {
  CHECK(runs("0388c6fa", 3, 8) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(runs("0a01"
             "0302",
             1, 7) == std::vector<std::uint32_t>{1, 1, 1, 1, 1, 0, 1});
  CHECK(runs("04ff03", 10, 2) == std::vector<std::uint32_t>{1023, 1023});
  CHECK(runs("10", 0, 8) == std::vector<std::uint32_t>(8, 0));
  CHECK(runs("", 5, 0).empty());
  CHECK(has(failure([] { runs("0402", 1, 2); }), "2 in a run of 1 bits"));
  CHECK(has(failure([] { runs("00", 1, 2); }), "a run of no values"));
  CHECK(has(failure([] { runs("0388c6", 3, 8); }), "expected 3 bytes"));
  CHECK(has(failure([] { runs("0388c6", 33, 8); }), "numbers of 33 bits"));
}

TEST_CASE("deltas are read as Encodings.md shows them") {
  // 1, 2, 3, 4, 5: the block's least delta is 1, and all parts have no bits.
  CHECK(deltas("80010405"
               "02"
               "0200000000",
               5) == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  // 7, 5, 3, 1, 2, 3, 4, 5: the least delta is -2, the others are 0 0 0 3 3 3 3 in two bits.
  CHECK(deltas("80010408"
               "0e"
               "0302000000"
               "c03f000000000000",
               8) == std::vector<std::int64_t>{7, 5, 3, 1, 2, 3, 4, 5});
  CHECK(deltas("80010400"
               "00",
               0)
            .empty());
  CHECK(has(failure([] {
              deltas(
                  "80010405"
                  "02"
                  "0200000000",
                  6);
            }),
            "claims 5 deltas for 6 values"));
  CHECK(has(failure([] {
              deltas(
                  "80010005"
                  "02",
                  5);
            }),
            "in blocks of 128 by 0"));
  CHECK(has(failure([] {
              deltas(
                  "80010405"
                  "02"
                  "0241000000",
                  5);
            }),
            "deltas of 65 bits"));
}

TEST_CASE("levels say which values are missing, in both of their encodings") {
  auto const page = read(column(parquet_type::int32, 1), parquet_file::levels({1, 0, 1}) + raw(7, 9), 3,
                         parquet_encoding::plain);
  CHECK(page.values->integers == std::vector<std::int64_t>{7, 9});
  CHECK(page.value(0) == 0);
  CHECK(page.value(1) == parquet_page::null);
  CHECK(page.value(2) == 1);
  auto const packed = read(column(parquet_type::int32, 1), "\xa0" + raw(7, 9), 3, parquet_encoding::plain, {},
                           parquet_encoding::bit_packed);
  CHECK(packed.slots == page.slots);
  CHECK(has(failure([] {
              read(column(parquet_type::int32, 2), raw(2u) + from_hex("0603"), 3, parquet_encoding::plain);
            }),
            "has a level above 2"));
}

TEST_CASE("a list's slots say which row they belong to") {
  // [5, null], [], null, [6]
  std::string const body = parquet_file::levels({0, 1, 0, 0, 0}) + raw(3u) + from_hex("031b03") + raw(5, 6);
  auto const page = read(column(parquet_type::int32, 3, 2), body, 5, parquet_encoding::plain);
  CHECK(page.rows == std::vector<std::uint32_t>{0, 2, 3, 4});
  CHECK(page.slots == std::vector<std::uint32_t>{0, parquet_page::null, parquet_page::no_element,
                                                 parquet_page::no_list, 1});
}

TEST_CASE("an index beyond the dictionary, and a dictionary that is not there, are refused") {
  auto dictionary = std::make_shared<parquet_values>();
  dictionary->integers = {4, 8};
  auto const page = read(column(parquet_type::int32),
                         from_hex("01"
                                  "0301"),
                         2, parquet_encoding::rle_dictionary, dictionary);
  CHECK(page.value(0) == 1);
  CHECK(page.value(1) == 0);
  CHECK(has(failure([&] {
              read(column(parquet_type::int32),
                   from_hex("02"
                            "0403"),
                   2, parquet_encoding::plain_dictionary, dictionary);
            }),
            "refers to value 3 of a dictionary of 2"));
  CHECK(has(failure([&] {
              read(column(parquet_type::int32),
                   from_hex("01"
                            "0301"),
                   2, parquet_encoding::rle_dictionary);
            }),
            "none precedes it"));
}

TEST_CASE("what does not go together is refused") {
  CHECK(has(failure([] { read(column(parquet_type::bytes), "", 1, parquet_encoding::delta_binary_packed); }),
            "encoding 5 does not go with type 6"));
  CHECK(has(failure([] { read(column(parquet_type::int64), raw(1), 1, parquet_encoding::plain); }),
            "expected 8 bytes"));
  CHECK(has(failure([] { read(column(parquet_type::bytes), raw(9u), 1, parquet_encoding::plain); }),
            "expected 9 bytes"));
  // Two texts of one byte, of which the first begins as the one before it.
  CHECK(has(failure([] {
              read(column(parquet_type::bytes),
                   from_hex("80010402"
                            "02"
                            "0000000000"
                            "80010402"
                            "02"
                            "0000000000"),
                   2, parquet_encoding::delta_byte_array);
            }),
            "begins as a longer one"));
  std::string const header = parquet_file::page("", 1 << 25);
  CHECK(has(failure([&] { parse_parquet_page_header(header); }), "write smaller pages"));
  std::string const unknown = parquet_file::page("", 1, 1);
  CHECK(has(failure([&] { parse_parquet_page_header(unknown); }), "unknown encoding 1"));
}

TEST_CASE("a page of version 2 has levels in runs, whatever a header of version 1 in it says") {
  // Bits of 8 values, of which a reader of packed ones would take more bytes than there are.
  parquet_file::compact h;
  h.number(1, 3, 5).number(2, 2, 5).number(3, 2, 5);
  h.structure(5, parquet_file::compact().number(3, 4, 5).number(4, 4, 5));
  h.structure(8, parquet_file::compact()
                     .number(1, 4096, 5)
                     .number(2, 4096, 5)
                     .number(3, 4096, 5)
                     .number(4, 0, 5)
                     .number(5, 2, 5)
                     .number(6, 0, 5));
  auto const header = parse_parquet_page_header(h.bytes + '\0');
  CHECK(header.definition == parquet_encoding::rle);
  CHECK(header.repetition == parquet_encoding::rle);
  CHECK(has(failure([&] {
              read_parquet_page(column(parquet_type::int32, 1), parquet_codec::none, header, from_hex("0300"),
                                {});
            }),
            "expected"));
}

TEST_CASE("a decimal of more bytes than 76 digits take, or of none, is refused") {
  auto c = column(parquet_type::bytes);
  c.meaning = parquet_meaning::decimal;
  auto const of = [](std::uint32_t size) { return raw(size) + std::string(size, '\x01'); };
  CHECK(read(c, of(32), 1, parquet_encoding::plain).values->size() == 1);
  CHECK(has(failure([&] { read(c, of(33), 1, parquet_encoding::plain); }), "a decimal of 33 bytes"));
  CHECK(has(failure([&] { read(c, of(1) + of(0), 2, parquet_encoding::plain); }), "a decimal of 0 bytes"));
  std::string const body = of(33);
  parquet_page_header h;
  h.type = parquet_page_header::kind::dictionary;
  h.size = h.unpacked = std::uint32_t(body.size());
  h.values = 1;
  CHECK(has(failure([&] { read_parquet_dictionary(c, parquet_codec::none, h, body); }),
            "a decimal of 33 bytes"));
  c.meaning = parquet_meaning::as_stored;
  CHECK(read(c, body, 1, parquet_encoding::plain).values->bytes.size() == 33);
}

}  // namespace parquet_page_test
