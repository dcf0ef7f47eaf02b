// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/picture_file.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdlib>

#include "compute/data/pictures.hpp"
#include "compute/data/support.hpp"

namespace picture_file_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

std::string refused(std::string const& file) {
  pixels p;
  return failure([&] { decode_picture(file, p); });
}

/// A file whose chunk at `at`, of `size` bytes, has its right checksum again.
std::string summed(std::string file, std::size_t at, std::size_t size) {
  auto const sum = ::crc32(0, reinterpret_cast<Bytef const*>(file.data()) + at + 4, uInt(size + 4));
  for (std::size_t i = 0; i < 4; ++i) file[at + 8 + size + i] = char(sum >> (24 - 8 * i));
  return file;
}

/// A PNG file whose header claims another size.
std::string claiming(std::string file, std::uint32_t width, std::uint32_t height) {
  for (std::size_t i = 0; i < 4; ++i) {
    file[16 + i] = char(width >> (24 - 8 * i));
    file[20 + i] = char(height >> (24 - 8 * i));
  }
  return summed(std::move(file), 8, 13);
}

}  // namespace

TEST_CASE("PNG and WebP files give their pixels, grey or in colour") {
  for (edl::shape const of : {edl::shape{5, 7, 1}, edl::shape{5, 7, 3}, edl::shape{1, 1, 3}}) {
    auto const p = support::gradient(of);
    pixels read;
    decode_picture(encode_png(p), read);
    CHECK(read.extents == of);
    CHECK(read.values == p.values);
    if (of.channels == 1) continue;
    decode_picture(support::encode_webp(p), read);
    CHECK(read.extents == of);
    CHECK(read.values == p.values);
  }
}

TEST_CASE(
    "palettes, single bits, 16 bits, transparency and interlaced files become 8 bits of grey or colour") {
  using bytes = std::vector<std::uint8_t>;
  pixels p;
  auto const decoded = [&](int height, int width, int bits, int kind, bool interlaced, bytes rows) {
    decode_picture(support::encode_any_png(height, width, bits, kind, interlaced, std::move(rows)), p);
    CHECK(p.extents.height == height);
    CHECK(p.extents.width == width);
    return p.values;
  };
  CHECK(decoded(1, 2, 8, PNG_COLOR_TYPE_PALETTE, false, {1, 0}) == bytes{40, 50, 60, 10, 20, 30});
  CHECK(decoded(1, 3, 1, PNG_COLOR_TYPE_PALETTE, false, {0b01000000}) ==
        bytes{10, 20, 30, 40, 50, 60, 10, 20, 30});
  CHECK(decoded(1, 4, 1, PNG_COLOR_TYPE_GRAY, false, {0b01010000}) == bytes{0, 255, 0, 255});
  CHECK(p.extents.channels == 1);
  CHECK(decoded(1, 1, 16, PNG_COLOR_TYPE_GRAY, false, {0x80, 0x80}) == bytes{128});
  CHECK(decoded(1, 1, 16, PNG_COLOR_TYPE_RGB, false, {0, 0, 0xff, 0xff, 0x40, 0x40}) == bytes{0, 255, 64});
  CHECK(decoded(1, 2, 8, PNG_COLOR_TYPE_GRAY_ALPHA, false, {7, 0, 9, 255}) == bytes{7, 9});
  CHECK(decoded(1, 1, 8, PNG_COLOR_TYPE_RGB_ALPHA, false, {1, 2, 3, 0}) == bytes{1, 2, 3});
  bytes rows;
  for (int i = 0; i < 11 * 9 * 3; ++i) rows.push_back(std::uint8_t(7 * i));
  CHECK(decoded(11, 9, 8, PNG_COLOR_TYPE_RGB, true, rows) == rows);
}

TEST_CASE("JPEG files give their pixels nearly, in one go or in several") {
  for (edl::shape const of : {edl::shape{16, 24, 1}, edl::shape{16, 24, 3}})
    for (bool const progressive : {false, true}) {
      auto const p = support::plain(of, 90);
      pixels read;
      decode_picture(support::encode_jpeg(p, progressive), read);
      CHECK(read.extents == of);
      bool near = true;
      for (std::size_t i = 0; i < p.values.size(); ++i)
        near = near && std::abs(int(read.values[i]) - int(p.values[i])) <= 2;
      CHECK(near);
    }
}

TEST_CASE("an ending names a picture in any case") {
  CHECK(names_picture("a.png"));
  CHECK(names_picture("a.b.JPG"));
  CHECK(names_picture("a.jpeg"));
  CHECK(names_picture("x.WebP"));
  CHECK_FALSE(names_picture(".png"));
  CHECK_FALSE(names_picture("png"));
  CHECK_FALSE(names_picture("a.png.txt"));
}

TEST_CASE("a header that claims more than can be is refused before there is memory for it") {
  auto const small = encode_png(support::gradient({4, 4, 3}));
  CHECK(has(refused(claiming(small, 1u << 31, 1)), "a PNG file is damaged"));
  CHECK(has(refused(claiming(small, 70'000, 4)), "PNG file is damaged: "));
  CHECK(has(refused(claiming(small, 65'000, 65'000)),
            "which " + std::to_string(small.size()) + " bytes cannot"));
  CHECK(has(refused(claiming(small, 3'000, 3'000)), "bytes cannot hold"));
  auto jpeg = support::encode_jpeg(support::gradient({16, 16, 1}));
  auto const frame = jpeg.find("\xff\xc0");
  REQUIRE(frame != jpeg.npos);
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xfd';
  CHECK(has(refused(jpeg), "at most 33554432 are read"));
}

TEST_CASE("files that end too early or are damaged are refused") {
  auto const p = support::gradient({40, 40, 3});
  for (std::string const& file :
       {encode_png(p), support::encode_jpeg(p), support::encode_jpeg(p, true), support::encode_webp(p)}) {
    int cuts = 0, refusals = 0;
    for (std::size_t size = 0; size + 20 < file.size(); size += 1 + file.size() / 50, ++cuts)
      refusals += refused(file.substr(0, size)).empty() ? 0 : 1;
    CHECK(cuts > 10);
    CHECK(refusals == cuts);
    CHECK(refused(file.substr(0, file.size() / 2)) != "");
  }
  auto png = encode_png(p);
  png[png.size() / 2] = char(png[png.size() / 2] ^ 0x55);
  CHECK(has(refused(png), "a PNG file is damaged: "));
  CHECK(refused("") == "is empty");
  CHECK(refused("GIF89a") == "is no PNG, JPEG or WebP file");
  CHECK(has(refused(support::encode_jpeg(support::gradient({8, 8, 4}))), "as for printing"));
}

TEST_CASE("pictures damaged at random are errors or other pictures") {
  auto const p = support::gradient({9, 11, 3});
  std::string const files[]{encode_png(p), support::encode_jpeg(p), support::encode_jpeg(p, true),
                            support::encode_webp(p)};
  int refusals = 0, read = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    pixels into;
    auto const why = failure([&] { decode_picture(support::mutate(files[i % 4], {11, i}), into); });
    (why.empty() ? read : refusals) += 1;
    if (why.empty()) CHECK(into.values.size() == into.extents.size());
  }
  CHECK(refusals > 1000);
  CHECK(read > 50);
}

TEST_CASE("a PNG file is made of one or three channels") {
  CHECK(has(failure([] { encode_png({{2, 2, 2}, std::vector<std::uint8_t>(8)}); }), "make no PNG file"));
  CHECK(has(failure([] { encode_png({{2, 2, 1}, std::vector<std::uint8_t>(3)}); }), "make no PNG file"));
  CHECK(has(failure([] { encode_png({{0, 2, 1}, {}}); }), "make no PNG file"));
}

}  // namespace picture_file_test
