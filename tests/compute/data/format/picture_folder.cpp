// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/picture_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "compute/data/pictures.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/first_records.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/split.hpp"

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
  CHECK(has(failure([&] { in->read(0, 42, e); }), "there is no picture 42"));
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
