// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/tfrecord.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/compute/data/source.hpp"

namespace tfrecord_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

std::string framed(std::string const& payload) {
  auto const put = [](auto number) {
    return std::string(reinterpret_cast<char const*>(&number), sizeof number);
  };
  auto const size = put(std::uint64_t(payload.size()));
  return size + put(detail::masked(detail::crc32c(size))) + payload +
         put(detail::masked(detail::crc32c(payload)));
}

std::string record(std::int64_t label, std::size_t more = 0) {
  example e;
  edl::example_builder b{e};
  b.integer("label", label);
  b.bytes("text", std::string(more, 'x'));
  std::string serialised;
  edl::encode(e, serialised);
  return framed(serialised);
}

}  // namespace

TEST_CASE("a record as another program frames it") {
  // By Python, from the description of the format.
  CHECK(framed("abc") == support::from_hex("0300000000000000b099490e6162636e57f121"));
}

TEST_CASE("the examples of TFRecord files, of any size") {
  support::scratch const dir;
  std::string one, two;
  for (int i = 0; i < 3000; ++i) one += record(i, std::size_t(i % 7));
  for (int i = 0; i < 20; ++i) two += record(i, 5000 * std::size_t(i % 3));
  support::write(dir / "set/a.tfrecord-00000-of-00002", one);
  support::write(dir / "set/a.tfrecord-00001-of-00002", two);
  auto const s = open_source(dir / "set");
  REQUIRE(s->shards() ==
          std::vector<shard>{{"a.tfrecord-00000-of-00002", 3000}, {"a.tfrecord-00001-of-00002", 20}});
  auto const in = s->open();
  example e;
  for (std::uint64_t i = 0; i < 3000; i += 37) {
    in->read(0, i, e);
    CHECK(e.integer("label") == std::int64_t(i));
  }
  for (std::uint64_t i = 20; i-- > 0;) {
    in->read(1, i, e);
    CHECK(e.integer("label") == std::int64_t(i));
    CHECK(e.bytes("text").size() == 5000 * (i % 3));
  }
  CHECK(has(failure([&] { in->read(1, 20, e); }), "there is no record 20, it has 20"));
  CHECK(s->digest(0) != s->digest(1));
  CHECK(s->digest(2) == 0);
  // Where no name says so, the first bytes do.
  support::write(dir / "train", one);
  CHECK(is_tfrecord(dir / "train"));
  CHECK(records(*open_source(dir / "train")) == 3000);
}

TEST_CASE("damage is told with file, record and byte, and what lies before it can be used") {
  support::scratch const dir;
  auto const path = dir / "a.tfrecord";
  auto const first = record(1), second = record(2, 10), third = record(3);
  auto const at = std::to_string(first.size());
  auto bad = first + second + third;
  bad[first.size() + 9] = char(bad[first.size() + 9] ^ 1);
  support::write(path, bad);
  CHECK(failure([&] { open_source(path); }) ==
        path + ": record 1 at byte " + at + ": its length has a wrong checksum");
  auto const rest = open_source(path, {.skip_damaged = true});
  CHECK(records(*rest) == 1);
  REQUIRE(rest->damage().size() == 1);
  CHECK(has(rest->damage()[0], "record 1"));
  CHECK(has(rest->damage()[0], std::to_string(bad.size() - first.size()) + " of the file's " +
                                   std::to_string(bad.size()) + " bytes are left out"));

  support::write_anew(path, (first + second).substr(0, first.size() + second.size() - 3));
  CHECK(has(failure([&] { open_source(path); }), "and the file ends after"));
  support::write_anew(path, first + "abc");
  CHECK(has(failure([&] { open_source(path); }), "record 1 at byte " + at + ": the file ends within it"));
  support::write_anew(path, "This is something else entirely.");
  CHECK(has(failure([&] { open_source(path); }), "is this a TFRecord file without compression?"));

  auto flipped = first + second + third;
  flipped[first.size() + 14] = char(flipped[first.size() + 14] ^ 1);
  support::write_anew(path, flipped);
  auto const s = open_source(path);
  auto const in = s->open();
  example e;
  CHECK(has(failure([&] { in->read(0, 1, e); }), path + ": record 1 at byte " + at + ": its checksum is 0x"));
  in->read(0, 2, e);
  CHECK(e.integer("label") == 3);
  support::write_anew(path, framed("no example"));
  CHECK(has(failure([&] { open_source(path)->open()->read(0, 0, e); }), "is no tf.train.Example"));
}

TEST_CASE("a length that cannot be is refused before there is memory for it") {
  support::scratch const dir;
  std::string const size = support::from_hex("ffffffffffffff7f");
  std::uint32_t const sum = detail::masked(detail::crc32c(size));
  support::write(dir / "a.tfrecord", size + std::string(reinterpret_cast<char const*>(&sum), 4) + "12345678");
  CHECK(has(failure([&] { open_source(dir / "a.tfrecord"); }), "has 9223372036854775807 bytes, at most"));
}

}  // namespace tfrecord_test
