// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/web_dataset.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/compute/data/source.hpp"

namespace web_dataset_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has, support::scratch;

namespace {

/// A header and what belongs to it, filled up to blocks.
std::string member(std::string const& name, std::string const& bytes, char type = '0',
                   std::string const& prefix = {}, std::string const& size = {}) {
  std::string head(512, '\0');
  head.replace(0, name.size(), name);
  head.replace(124, 12, size.empty() ? fmt::format("{:011o}", bytes.size()) + '\0' : size);
  head[156] = type;
  head.replace(257, 8,
               std::string("ustar\0"
                           "00",
                           8));
  head.replace(345, prefix.size(), prefix);
  unsigned sum = 8 * ' ';
  for (char const c : head) sum += static_cast<unsigned char>(c);
  head.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return head + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string const end(1024, '\0');

std::string pax(std::string const& key, std::string const& value) {
  std::size_t length = key.size() + value.size() + 3;
  while (std::to_string(length).size() + key.size() + value.size() + 3 != length) ++length;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

std::string png() { return encode_png({{1, 2, 3}, {1, 2, 3, 4, 5, 6}}); }

}  // namespace

TEST_CASE("files of one key are a record, and their endings say what they give") {
  scratch const dir;
  std::string const path = support::write(
      dir / "a.tar", member("d/", "", '5') + member("d/1.PNG", png()) + member("d/1.cls", "7\n") +
                         member("d/1.txt", "a cat") + member("d/2.cls", "-1") +
                         member("d/2.left.jpg", "raw") + member("d/2.score", "1.5") + end);
  auto const s = open_source(path);
  CHECK(s->shards() == std::vector<shard>{{"a.tar", 2}});
  CHECK(s->notes().empty());
  auto const in = s->open();
  example e;
  in->read(0, 1, e);
  CHECK(e.names() == std::vector<std::string_view>{"__key__", "label", "left.jpg", "score"});
  CHECK(e.integer("label") == -1);
  CHECK(e.bytes("left.jpg") == "raw");
  CHECK(e.bytes("score") == "1.5");
  CHECK(e.floating("score") == 1.5f);
  in->read(0, 0, e);
  CHECK(e.bytes("__key__") == "d/1");
  CHECK(e.integer("label") == 7);
  CHECK(e.bytes("txt") == "a cat");
  auto const image = edl::picture_of(e);
  CHECK(image.extents.width == 2);
  CHECK(image.values[5] == 6);
  CHECK(has(failure([&] { in->read(0, 2, e); }), "no record 2: the file has 2"));
  CHECK(has(failure([&] { in->read(1, 0, e); }), "no shard 1: the data has only 1"));
}

TEST_CASE("a directory or a list of archives has a shard for each") {
  scratch const dir;
  support::write(dir / "s/0.tar", member("a.cls", "1") + end);
  support::write(dir / "s/1.tar", member("a.cls", "2") + member("b.cls", "3") + end);
  for (std::string const& path : {dir / "s", (dir / "s/0.tar") + "," + (dir / "s/1.tar"), dir / "s/*.tar"}) {
    auto const s = open_source(path);
    CHECK(s->shards() == std::vector<shard>{{"0.tar", 1}, {"1.tar", 2}});
    auto const in = s->open();
    example e;
    in->read(1, 1, e);
    CHECK(e.integer("label") == 3);
    in->read(0, 0, e);
    CHECK(e.integer("label") == 1);
    CHECK(s->digest(0) != s->digest(1));
    CHECK(s->digest(2) == 0);
  }
}

TEST_CASE("long names, sizes in bytes and archives one behind the other are read") {
  scratch const dir;
  std::string const deep(120, 'x');
  std::string const binary = std::string("\x80", 1) + std::string(10, '\0') + "\1";
  std::string const path = support::write(
      dir / "a.tar",
      member("././@LongLink", deep + "/1.txt" + '\0', 'L') + member("cut", "gnu") +  //
          member("PaxHeader", pax("mtime", "1.5") + pax("path", deep + "/2.txt") + pax("size", "3"),
                 'x') +  //
          member("cut", "pax", '0', "", "00000000000 ") +
          member("3.txt", "!", '0', "some/prefix", binary) + end +  //
          member("g", pax("path", "no"), 'g') + member("4.txt", "4", '\0') + end);
  auto const s = open_source(path);
  REQUIRE(s->shards()[0].records == 4);
  auto const in = s->open();
  example e;
  for (auto const& [i, key, text] : {std::tuple{0u, deep + "/1", "gnu"},
                                     {1u, deep + "/2", "pax"},
                                     {2u, std::string("some/prefix/3"), "!"},
                                     {3u, std::string("4"), "4"}}) {
    in->read(0, i, e);
    CHECK(e.bytes("__key__") == key);
    CHECK(e.bytes("txt") == text);
  }
}

TEST_CASE("what is left out is told, and what cannot be is refused with its place") {
  scratch const dir;
  auto const open = [&](std::string const& bytes) {
    return open_source(support::write_anew(dir / "a.tar", bytes));
  };
  auto const refused = [&](std::string const& bytes) { return failure([&] { open(bytes); }); };
  std::string const good = member("1.txt", "x");
  auto const s = open(member("README", "text") + good + member("1.link", "", '2') + end);
  REQUIRE(s->notes().size() == 1);
  CHECK(has(s->notes()[0],
            "a.tar: 2 files are left out, as links and names without an ending are; the first is README"));
  CHECK(has(refused(std::string(600, 'x')), "a.tar: byte 0: is not a tar header; unpack"));
  CHECK(has(refused(good + std::string(600, 'x')), "byte 1024: is not a tar header: its checksum is wrong"));
  CHECK(has(refused(good), "has no end"));
  CHECK(has(refused(good + "x"), "byte 1024: ends within a header"));
  CHECK(has(refused(member("1.txt", "", '0', "", "00000100000") + end),
            "claims more bytes than the archive has"));
  CHECK(has(refused(member("p", "999 path=x\n", 'x') + good + end),
            "byte 0: is an extended header that is malformed"));
  CHECK(has(refused(member("p", pax("size", "-1"), 'x') + good + end), "extended header that is malformed"));
  CHECK(has(refused(good + member("1.TXT", "y") + end), "1.TXT: its record has the feature 'txt' twice"));
  CHECK(has(refused(member("1.cls", "1") + member("1.label", "1") + end), "has the feature 'label' twice"));
  CHECK(has(refused(member("1.jpg", "") + member("1.png", "") + end), "has the feature 'image' twice"));
  CHECK(has(refused(member("README", "text") + end), "holds no records"));
  example e;
  auto const wrong = open(member("d/1.cls", "cat") + member("d/2.png", "none") + end);
  CHECK(has(failure([&] { wrong->open()->read(0, 0, e); }),
            "a.tar: d/1.cls: expected a whole number, found 'cat'"));
  CHECK(has(failure([&] { wrong->open()->read(0, 1, e); }), "a.tar: d/2.png: "));
  auto const changed = open(good + end);
  auto const in = changed->open();
  support::write(dir / "a.tar", good + good + end);
  CHECK(has(failure([&] { in->read(0, 0, e); }), "start again on the new file"));
}

TEST_CASE("a damaged archive is an error or has records, whichever byte is wrong and wherever it is cut") {
  scratch const dir;
  std::string const whole = member("p", pax("path", "d/1.txt"), 'x') + member("cut", "text") +
                            member("d/1.cls", "5") + std::string(512, '\0');
  auto const read_all = [&](std::string const& bytes) {
    return failure([&] {
      auto const s = open_source(support::write_anew(dir / "a.tar", bytes));
      auto const in = s->open();
      example e;
      for (std::uint64_t i = 0; i < s->shards()[0].records; ++i) in->read(0, i, e);
    });
  };
  CHECK(read_all(whole).empty());
  for (std::size_t n = 0; n < whole.size(); n += 7) CHECK(!read_all(whole.substr(0, n)).empty());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = char(bytes[i] ^ 0x81);
    auto const why = read_all(bytes);
    CHECK((why.empty() || has(why, "a.tar")));
  }
}

}  // namespace web_dataset_test
