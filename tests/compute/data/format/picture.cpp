// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/picture.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "compute/data/pictures.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/first_records.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/split.hpp"

namespace picture_test {

using edl::picture, edl::resized, edl::shape;
using support::failure, support::has;

namespace {

edl::example record(std::vector<float> const& values, int height, int width) {
  edl::example e;
  edl::example_builder b{e};
  b.floats("image", values);
  b.integer("height", height);
  b.integer("width", width);
  return e;
}

std::vector<float> made(std::vector<float> const& values, shape from, shape to) {
  auto const t = resized(picture{from, values}, to);
  return {t.begin(), t.end()};
}

}  // namespace

TEST_CASE("the picture of a record has the shape that the record says") {
  auto const e = record({1, 2, 3, 4, 5, 6}, 1, 2);
  CHECK(edl::picture_of(e).extents == shape{1, 2, 3});
  CHECK(edl::picture_of(e).values[5] == 6);
  for (auto const& [h, w] : {std::pair{0, 2}, {4, 1}, {-1, -2}, {1 << 30, 1 << 30}})
    CHECK(has(failure([&] { edl::picture_of(record({1, 2, 3, 4, 5, 6}, h, w)); }),
              "do not form a picture of height"));
  CHECK(has(failure([&] { edl::picture_of(e, "photo"); }), "no floats as feature 'photo'"));
}

TEST_CASE("a picture of the same size stays, one that shrinks is averaged by area") {
  std::vector<float> const four{0, 10, 20, 30};
  CHECK(made(four, {2, 2, 1}, {2, 2, 1}) == four);
  CHECK(made(four, {2, 2, 1}, {1, 1, 1}) == std::vector<float>{15});
  CHECK(made(four, {1, 4, 1}, {1, 2, 1}) == std::vector<float>{5, 25});
  // Three to two: each takes one and a half places.
  auto const two = made({0, 3, 6}, {1, 3, 1}, {1, 2, 1});
  CHECK(two[0] == doctest::Approx(1));
  CHECK(two[1] == doctest::Approx(5));
}

TEST_CASE("a picture that grows is linear between centres, and constant at its edge") {
  auto const wide = made({0, 8}, {1, 2, 1}, {1, 4, 1});
  CHECK(wide == std::vector<float>{0, 2, 6, 8});
  CHECK(made({7}, {1, 1, 1}, {3, 2, 1}) == std::vector<float>(6, 7.0f));
  // One axis shrinks, the other grows.
  CHECK(made({0, 8, 4, 12}, {2, 2, 1}, {1, 4, 1}) == std::vector<float>{2, 4, 8, 10});
}

TEST_CASE("no value leaves the range of the picture, whatever the sizes are") {
  edl::random_stream const random(3, 0);
  for (int from = 1; from < 40; from += 3)
    for (int to = 1; to < 40; to += 4) {
      std::vector<float> values(std::size_t(from * from));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 255 * random.uniform(i);
      auto const t = made(values, {from, from, 1}, {to, to, 1});
      auto const [least, most] = std::ranges::minmax(t);
      CHECK(least >= -0.01f);
      CHECK(most <= 255.01f);
      auto const same = made(std::vector<float>(values.size(), 90), {from, from, 1}, {to, to, 1});
      CHECK(std::ranges::all_of(same, [](float v) { return v > 89.99f && v < 90.01f; }));
    }
}

TEST_CASE("grey becomes colour and colour grey, and nothing else") {
  CHECK(made({1, 2}, {1, 2, 1}, {1, 2, 3}) == std::vector<float>{1, 1, 1, 2, 2, 2});
  auto const grey = made({100, 0, 0, 0, 100, 0}, {1, 2, 3}, {1, 2, 1});
  CHECK(grey[0] == doctest::Approx(29.9));
  CHECK(grey[1] == doctest::Approx(58.7));
  CHECK(has(failure([] { made({1, 2}, {1, 1, 2}, {1, 1, 3}); }), "has 2 channels, and 3 are wanted"));
  std::vector<float> three(3);
  CHECK(has(failure([&] { edl::resize(picture{{1, 1, 1}, three}, {2, 2, 1}, three); }), "cannot be resized"));
  CHECK(has(failure([&] { edl::resize(picture{{1, 1, 1}, three}, {0, 2, 1}, {}); }), "cannot be resized"));
}

}  // namespace picture_test

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
  CHECK(refused("GIF89a") == "is not a PNG, JPEG or WebP file");
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

namespace picture_folder_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

void fill(support::scratch const& dir, int each = 20) {
  for (auto const& [name, value] : std::map<std::string, std::uint8_t>{{"cat", 10}, {"bird", 200}})
    for (int i = 0; i < each; ++i)
      support::write(dir / (name + "/" + std::to_string(i) + ".png"),
                     encode_png(support::plain({3 + i % 2, 4, 3}, value)));
}

}  // namespace

TEST_CASE("a folder's name is the class, and its place by name the label") {
  support::scratch const dir;
  fill(dir);
  support::write(dir / "cat/z.JPEG", support::encode_jpeg(support::plain({8, 8, 1}, 10)));
  support::write(dir / "bird/z.webp", support::encode_webp(support::plain({8, 8, 3}, 200)));
  for (char const* other : {"cat/Thumbs.db", "cat/.x.png", "cat/deeper/x.png", "notes.txt", "README"})
    support::write(dir / other, "x");
  std::filesystem::create_directory(dir / "ant");
  auto const s = open_source(dir.path());
  CHECK(std::ranges::equal(s->classes(), std::vector<std::string>{"ant", "bird", "cat"}));
  REQUIRE(s->shards().size() == 1);
  CHECK(s->shards()[0].records == 42);
  auto const in = s->open();
  std::map<std::int64_t, int> count, early;
  for (std::uint64_t i = 0; i < 42; ++i) {
    example e;
    in->read(0, i, e);
    std::int64_t const label = e.integer("label");
    ++count[label];
    if (i < 20) ++early[label];
    CHECK(std::abs(e.float_values("image")[0] - (label == 1 ? 200 : 10)) <= 1);
    CHECK(e.bytes("file").starts_with(label == 1 ? "bird/" : "cat/"));
    auto const places = e.integer("height") * e.integer("width");
    CHECK((e.count("image") == std::size_t(3 * places) || e.count("image") == std::size_t(places)));
  }
  CHECK(count == std::map<std::int64_t, int>{{1, 21}, {2, 21}});
  // The classes are mixed, so that a task has some of each.
  CHECK(early[1] > 3);
  CHECK(early[2] > 3);
  example e;
  CHECK(has(failure([&] { in->read(0, 42, e); }), "no picture 42"));
}

TEST_CASE("a picture goes by the name of its file, also in a list, a split and the first records") {
  support::scratch const one, two;
  fill(one), fill(two);
  std::shared_ptr<source const> const list = open_source(one.path() + "," + two.path());
  split_source const held_out(list, 0.3, 1, split_part::validation);
  first_records const first(open_source(two.path()), 3);
  for (source const* const s :
       {list.get(), static_cast<source const*>(&held_out), static_cast<source const*>(&first)}) {
    auto const in = s->open();
    for (std::size_t shard = 0; shard < s->shards().size(); ++shard)
      for (std::uint64_t i = 0; i < s->shards()[shard].records; ++i) {
        example e;
        in->read(shard, i, e);
        auto const& folder = shard == 0 && s != &first ? one : two;
        CHECK(s->own_file(shard, i) == folder / std::string(e.bytes("file")));
        CHECK(failure([&] { at_record(*s, shard, i, [] { throw edl::data_error("it is too dark"); }); }) ==
              folder / std::string(e.bytes("file")) + ": it is too dark");
      }
  }
}

TEST_CASE("the same files are the same records in the same order, others have another digest") {
  support::scratch const one, two;
  fill(one), fill(two);
  picture_folder const a(one.path()), b(two.path());
  auto const in = a.open(), too = b.open();
  example x, y;
  for (std::uint64_t i = 0; i < 40; ++i) {
    in->read(0, i, x), too->read(0, i, y);
    CHECK(x.bytes("file") == y.bytes("file"));
  }
  CHECK(a.digest(0) == b.digest(0));
  CHECK(a.digest(1) == 0);
  support::write_anew(two / "cat/3.png", encode_png(support::plain({4, 4, 3}, 11)));
  CHECK(picture_folder(two.path()).digest(0) != a.digest(0));
  fill(two);
  CHECK(picture_folder(two.path()).digest(0) == a.digest(0));
  std::filesystem::rename(two / "cat/3.png", two / "cat/333.png");
  CHECK(picture_folder(two.path()).digest(0) != a.digest(0));
}

TEST_CASE("pictures without folders have no label") {
  support::scratch const dir;
  for (char const* name : {"c.png", "a.png", "d.png", "b.png"})
    support::write(dir / name, encode_png(support::plain({2, 2, 1}, 5)));
  support::write(dir / "notes.txt", "x");
  auto const s = open_source(dir.path());
  CHECK(s->classes().empty());
  example e;
  std::string names;
  for (std::uint64_t i = 0; i < 4; ++i) {
    s->open()->read(0, i, e);
    names += e.bytes("file");
  }
  CHECK(names == "a.pngb.pngc.pngd.png");
  CHECK(e.count("image") == 4);
  CHECK(!e.contains("label"));
  support::write(dir / "cat/b.png", encode_png(support::plain({2, 2, 1}, 5)));
  CHECK(has(failure([&] { open_source(dir.path()); }), "has the picture a.png beside folders"));
}

TEST_CASE("a damaged picture is named when it is read, and the others are not touched by it") {
  support::scratch const dir;
  fill(dir, 2);
  support::write_anew(dir / "cat/0.png", support::read(dir / "cat/0.png").substr(0, 60));
  support::write_anew(dir / "cat/1.png", "");
  picture_folder const s(dir.path());
  auto const in = s.open();
  int good = 0;
  std::string said;
  for (std::uint64_t i = 0; i < 4; ++i) {
    example e;
    try {
      in->read(0, i, e);
      ++good;
    } catch (edl::data_error const& bad) {
      said += bad.what();
      said += '\n';
    }
  }
  CHECK(good == 2);
  CHECK(has(said, (dir / "cat/0.png") + ": a PNG file is damaged: the file ends too early"));
  CHECK(has(said, (dir / "cat/1.png") + ": is empty"));
}

TEST_CASE("folders of folders, and folders of something else, are refused with a way out") {
  support::scratch const dir;
  support::write(dir / "train/cat/a.png", encode_png(support::plain({2, 2, 1}, 5)));
  CHECK(has(failure([&] { open_source(dir.path()); }), "name one of them, such as " + (dir / "train")));
  CHECK(records(*open_source(dir / "train")) == 1);
  CHECK(has(failure([&] { open_source(dir / "train/cat/a.png"); }), "name the folder"));
  support::write(dir / "other/x/a.bin", "x");
  CHECK(failure([&] { open_source(dir / "other"); }) == (dir / "other") + ": holds no data files");
}

TEST_CASE("a folder whose name says that it is no data is no class, nor is a link back, and a note says so") {
  support::scratch const dir;
  fill(dir, 1);
  for (char const* other : {"__MACOSX/x.png", "_old/y.png", "README.assets/z.png", ".ipynb_checkpoints/a.png",
                            "Thumbs.db", "desktop.ini", "DONE"})
    support::write(dir / other, "");
  std::filesystem::create_directory_symlink(".", dir / "again");
  std::filesystem::create_directory_symlink("..", dir / "cat/up");
  std::filesystem::create_directory_symlink("bird", dir / "robin");  // leads nowhere back
  auto const s = open_source(dir.path());
  CHECK(std::ranges::equal(s->classes(), std::vector<std::string>{"bird", "cat", "robin"}));
  CHECK(records(*s) == 3);
  REQUIRE(s->notes().size() == 2);
  CHECK(has(s->notes()[0], dir.path() + ": README.assets, __MACOSX, _old and 1 more are no classes"));
  CHECK(has(s->notes()[1], dir.path() + ": 1 entry is left out: cat/up/"));
}

TEST_CASE("what a class's folder has beside pictures is told, and pictures have several endings") {
  support::scratch const dir;
  fill(dir, 1);
  for (char const* name : {"cat/a.jfif", "cat/b.JPE"})
    support::write(dir / name, support::encode_jpeg(support::plain({8, 8, 3}, 10)));
  CHECK(open_source(dir.path())->notes().empty());
  CHECK(records(*open_source(dir.path())) == 4);
  for (char const* name :
       {"cat/c.bmp", "cat/d.gif", "cat/e.tiff", "cat/more/f.png", "cat/notes.txt", "cat/Thumbs.db"})
    support::write(dir / name, "x");
  auto const s = open_source(dir.path());
  CHECK(records(*s) == 4);
  REQUIRE(s->notes().size() == 1);
  CHECK(has(s->notes()[0], ": 4 entries are left out: cat/c.bmp, cat/d.gif, cat/e.tiff and 1 more; .png, "));
}

}  // namespace picture_folder_test
