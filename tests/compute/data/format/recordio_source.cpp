// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/recordio_source.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example_builder.hpp"

namespace recordio_source_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

/// Records with labels [begin, end), two to a chunk.
void write_labels(std::string const& path, std::int64_t begin, std::int64_t end) {
  recordio_writer w{path, {.with = compressor::none, .max_chunk_bytes = 40}};
  edl::example e;
  std::string bytes;
  for (auto i = begin; i < end; ++i) {
    edl::example_builder(e).integer("label", i);
    encode(e, bytes);
    w.write(bytes);
  }
  w.close();
}

}  // namespace

TEST_CASE("files are shards in the given order; one without records is none") {
  support::scratch const dir;
  write_labels(dir / "a", 0, 5);
  write_labels(dir / "b", 0, 0);
  write_labels(dir / "c", 5, 8);
  recordio_source const s{{dir / "a", dir / "b", dir / "c"}};
  CHECK(s.shards() == std::vector<shard>{{"a", 5}, {"c", 3}});
  CHECK(s.damage().empty());
  auto const in = s.open(), other = s.open();
  edl::example e;
  for (std::uint64_t i : {4u, 0u, 2u, 1u, 3u}) {
    in->read(0, i, e);
    CHECK(e.integer("label") == std::int64_t(i));
    other->read(1, i % 3, e);
    CHECK(e.integer("label") == 5 + std::int64_t(i % 3));
    in->read(1, i % 3, e);
    CHECK(e.integer("label") == 5 + std::int64_t(i % 3));
  }
  CHECK(has(failure([&] { in->read(2, 0, e); }), "no shard 2"));
  CHECK(has(failure([&] { in->read(1, 3, e); }), (dir / "c") + ": there is no record 3, it has 3"));
}

TEST_CASE("a record that is no example is named; its neighbours are read") {
  support::scratch const dir;
  recordio_writer w{dir / "f"};
  std::string bytes;
  edl::example e;
  edl::example_builder(e).integer("label", 1);
  encode(e, bytes);
  w.write(bytes);
  w.write("junk");
  w.write(bytes);
  w.close();
  recordio_source const s{{dir / "f"}};
  auto const in = s.open();
  CHECK(has(failure([&] { in->read(0, 1, e); }), (dir / "f") + ": record 1: is no tf.train.Example"));
  in->read(0, 2, e);
  CHECK(e.integer("label") == 1);
}

TEST_CASE("a damaged file is refused, or told and left out as far as it must be") {
  support::scratch const dir;
  write_labels(dir / "a", 0, 6);
  write_labels(dir / "b", 6, 9);
  auto const whole = support::read(dir / "a");
  support::write(dir / "a", whole.substr(0, whole.size() - 10));
  CHECK(has(failure([&] { recordio_source({dir / "a", dir / "b"}); }), dir / "a"));
  recordio_source const s{{dir / "a", dir / "b"}, {.skip_damaged = true}};
  CHECK(s.shards() == std::vector<shard>{{"a", 4}, {"b", 3}});
  REQUIRE(s.damage().size() == 1);
  CHECK(has(s.damage()[0], "chunk 2"));
  CHECK(has(s.damage()[0], " of the file's " + std::to_string(whole.size() - 10) + " bytes are left out"));
}

TEST_CASE("a file that vanishes is an error of the record, and no lasting one") {
  support::scratch const dir;
  write_labels(dir / "a", 0, 2);
  write_labels(dir / "b", 2, 4);
  recordio_source const s{{dir / "a", dir / "b"}};
  auto const in = s.open();
  edl::example e;
  in->read(0, 0, e);
  std::filesystem::rename(dir / "b", dir / "c");
  CHECK(has(failure([&] { in->read(1, 0, e); }), "No such file"));
  std::filesystem::rename(dir / "c", dir / "b");
  in->read(1, 0, e);
  CHECK(e.integer("label") == 2);
}

}  // namespace recordio_source_test
