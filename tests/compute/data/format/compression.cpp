// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/compression.hpp"

#include <doctest/doctest.h>
#include <lz4.h>

#include "compute/data/support.hpp"

namespace compression_test {

namespace d = edl::data::detail;
using support::failure, support::has;

namespace {

std::string pattern(std::size_t size) {
  std::string s;
  for (std::size_t i = 0; i < size; ++i) s.push_back(char(i / 100));
  return s;
}

std::string noise(std::size_t size) {
  std::string s;
  for (std::size_t i = 0; i < size; ++i) s.push_back(char(edl::random_stream{5, 0}.bits(i)));
  return s;
}

constexpr std::size_t plenty = 1u << 30;

}  // namespace

TEST_CASE("checksums give the published check values") {
  CHECK(d::crc32("123456789") == 0xCBF43926);
  CHECK(d::crc32c("123456789") == 0xE3069283);
  CHECK(d::crc32c("") == 0);
  CHECK(d::crc32c(std::string(32, '\0')) == 0x8A9136AA);  // RFC 3720, B.4
  CHECK(d::crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
}

TEST_CASE("snappy frames hold what was put in, 65,536 bytes each") {
  std::string packed, unpacked;
  d::append_snappy_frames("", packed);
  CHECK(packed.empty());
  for (std::size_t const size : {1u, 100u, 65536u, 65537u, 200000u})
    for (auto const& piece : {pattern(size), noise(size)}) {
      packed.clear();
      d::append_snappy_frames(piece, packed);
      d::append_snappy_frames("end", packed);
      d::unpack_snappy_frames(packed, plenty, unpacked);
      CHECK(unpacked == piece + "end");
      CHECK(has(failure([&] { d::unpack_snappy_frames(packed, size + 2, unpacked); }), "more than"));
    }
  packed.clear();
  d::append_snappy_frames(pattern(65536), packed);
  CHECK(packed.size() < 10000);
  packed.clear();
  d::append_snappy_frames(noise(65536), packed);
  CHECK(packed.size() == 10 + 8 + 65536);  // stored
}

TEST_CASE("damaged snappy frames are refused") {
  std::string packed, unpacked;
  d::append_snappy_frames(pattern(1000), packed);
  d::append_snappy_frames("abc", packed);
  for (std::size_t i = 0; i < packed.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = packed;
      damaged[i] = char(damaged[i] ^ (1 << bit));
      // A data frame's type may become one that is to be skipped: its bytes are then missing, never wrong.
      if (failure([&] { d::unpack_snappy_frames(damaged, plenty, unpacked); }).empty())
        CHECK((unpacked == pattern(1000) + "abc" || unpacked.size() < 1003));
    }
  d::unpack_snappy_frames(packed.substr(10), plenty, unpacked);  // frames taken out of a stream
  CHECK(unpacked == pattern(1000) + "abc");
  auto const frame = [](std::string_view hex) {
    return std::string("\xff\x06\x00\x00sNaPpY", 10) + support::from_hex(hex);
  };
  CHECK(has(failure([&] { d::unpack_snappy_frames(frame("010000"), plenty, unpacked); }), "cut off"));
  CHECK(has(failure([&] { d::unpack_snappy_frames(frame("01090000aa"), plenty, unpacked); }), "1 are left"));
  CHECK(
      has(failure([&] { d::unpack_snappy_frames(frame("02000000"), plenty, unpacked); }), "unknown type 2"));
  CHECK(
      has(failure([&] { d::unpack_snappy_frames(frame("01030000aaaaaa"), plenty, unpacked); }), "checksum"));
  CHECK(has(failure([&] { d::unpack_snappy_frames(frame("0009000000000000ffffffff0f"), plenty, unpacked); }),
            "at most"));
  d::unpack_snappy_frames(frame("fe0300000000008001000000"), plenty,
                          unpacked);  // padding and reserved: skipped
  CHECK(unpacked.empty());
}

TEST_CASE("a snappy block cannot claim more than it can hold") {
  std::string unpacked;
  CHECK(has(failure([&] { d::unpack_snappy_block(support::from_hex("ffffffff0f00"), plenty, unpacked); }),
            "claims"));
  CHECK(has(failure([&] { d::unpack_snappy_block(support::from_hex("ffffff0300"), plenty, unpacked); }),
            "claims"));
  CHECK(has(failure([&] { d::unpack_snappy_block("", plenty, unpacked); }), "malformed"));
}

TEST_CASE("gzip goes there and back, over members, within its limit") {
  std::string packed, unpacked;
  for (auto const& raw : {std::string(), std::string("x"), pattern(300000), noise(100000)}) {
    d::pack_gzip(raw, packed);
    d::unpack_gzip(packed, plenty, unpacked);
    CHECK(unpacked == raw);
    d::unpack_gzip(packed + packed, plenty, unpacked);
    CHECK(unpacked == raw + raw);
    d::unpack_gzip(packed, raw.size(), unpacked);
    CHECK(unpacked == raw);
    if (!raw.empty())
      CHECK(has(failure([&] { d::unpack_gzip(packed, raw.size() - 1, unpacked); }), "more than"));
    for (std::size_t cut = 0; cut < packed.size(); cut += 1 + packed.size() / 50)
      CHECK(!failure([&] { d::unpack_gzip(packed.substr(0, cut), plenty, unpacked); }).empty());
  }
  d::pack_gzip(std::string(50'000'000, 'a'), packed);  // a bomb
  CHECK(packed.size() < 60'000);
  CHECK(has(failure([&] { d::unpack_gzip(packed, 1'000'000, unpacked); }), "more than"));
  CHECK(unpacked.capacity() < 5'000'000);
}

TEST_CASE("gzip takes the room that a file claims, up to 16 times its own size") {
  std::string packed, exact, wide;
  std::string const raw = noise(100000);
  d::pack_gzip(raw, packed);
  d::unpack_gzip(packed, plenty, exact);
  CHECK(exact == raw);
  CHECK(exact.capacity() < raw.size() + 64);
  packed.replace(packed.size() - 4, 4, "\xff\xff\xff\xff");
  CHECK(has(failure([&] { d::unpack_gzip(packed, std::size_t{1} << 40, wide); }), "damaged"));
  CHECK(wide.capacity() <= packed.size() * 16 + 64);
}

TEST_CASE("a block of LZ4 is unpacked to the size that is said, and no other") {
  std::string const raw = std::string(1000, 'a') + noise(300);
  std::string packed(std::size_t(LZ4_compressBound(int(raw.size()))), '\0'), unpacked;
  packed.resize(
      std::size_t(LZ4_compress_default(raw.data(), packed.data(), int(raw.size()), int(packed.size()))));
  d::unpack_lz4_block(packed, raw.size(), unpacked);
  CHECK(unpacked == raw);
  for (std::size_t const wrong : {raw.size() - 1, raw.size() + 1})
    CHECK(failure([&] { d::unpack_lz4_block(packed, wrong, unpacked); }) == "LZ4 block is malformed");
  CHECK(has(failure([&] { d::unpack_lz4_block(packed.substr(0, 4), 1021, unpacked); }),
            "LZ4 block of 4 bytes"));
  CHECK(!failure([&] {
           d::unpack_lz4_block(packed.substr(0, packed.size() - 9), raw.size(), unpacked);
         }).empty());
}

}  // namespace compression_test
