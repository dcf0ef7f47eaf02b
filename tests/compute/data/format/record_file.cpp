// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/record_file.hpp"

#include <doctest/doctest.h>
#include <snappy.h>

#include <cstring>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"

namespace recordio_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

constexpr char hello_none[] =
    "04030201148c74a10000000020000000030000000500000048656c6c6f06000000576f726c642c090000005265636f7264494f2"
    "1";
constexpr char hello_snappy[] =
    "04030201af2219b2010000005a00000003000000ff060000734e6150705901080000d9c69c4305000000010900008aeeb9be4865"
    "6c6c6f01"
    "0800001c03ee5506000000010a0000629913bc576f726c642c01080000a5b1b5a709000000010d000097a1a5715265636f726449"
    "4f21";

using list = std::vector<std::string>;
list const hello{"Hello", "World,", "RecordIO!"};

std::string write(std::string const& path, list const& records, recordio_options const& options = {}) {
  recordio_writer w{path, options};
  for (auto const& r : records) w.write(r);
  w.close();
  return support::read(path);
}

list read(std::string const& path) {
  recordio_reader r{path};
  list all;
  for (std::uint64_t i = 0; i < r.records(); ++i) all.emplace_back(r.read(i));
  return all;
}

/// A file in the layout of pyrecordio 0.0.2.
std::string python_chunk(list const& records, std::uint32_t compressor) {
  std::string raw, stored;
  for (auto const& r : records) {
    auto const n = std::uint32_t(r.size());
    raw.append(reinterpret_cast<char const*>(&n), 4).append(r);
  }
  if (compressor == 1) stored = raw;
  if (compressor == 2) snappy::Compress(raw.data(), raw.size(), &stored);
  if (compressor == 3) edl::data::detail::pack_gzip(raw, stored);
  std::uint32_t const header[5]{0x01020304, std::uint32_t(records.size()), edl::data::detail::crc32c(stored),
                                compressor, std::uint32_t(stored.size())};
  return std::string(reinterpret_cast<char const*>(header), 20) + stored;
}

std::string with_number(std::string bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, 4);
  return bytes;
}

}  // namespace

TEST_CASE("the writer gives the known bytes") {
  support::scratch const dir;
  CHECK(write(dir / "n", hello, {.with = compressor::none}) == support::from_hex(hello_none));
  CHECK(write(dir / "s", hello) == support::from_hex(hello_snappy));
  for (char const* name : {"n", "s"}) CHECK(read(dir / name) == hello);
}

TEST_CASE("files of the Go writer are read, and written again byte for byte") {
  auto const folder = support::data_sets("recordio");
  if (folder.empty()) return;
  support::scratch const dir;
  for (char const* name : {"none", "snappy", "gzip"})
    CHECK(read(folder + "/hello-" + name + ".recordio") == hello);
  CHECK(write(dir / "n", hello, {.with = compressor::none}) ==
        support::read(folder + "/hello-none.recordio"));
  CHECK(write(dir / "s", hello) == support::read(folder + "/hello-snappy.recordio"));
}

TEST_CASE("the first thousand MNIST images as RecordIO are those of the IDX files") {
  auto const folder = support::data_sets("recordio"), mnist = support::data_sets("mnist");
  if (folder.empty() || mnist.empty()) return;
  recordio_reader file{folder + "/mnist-test-0-1000-snappy.recordio"};
  REQUIRE(file.records() == 1000);
  idx_source const idx{mnist + "/t10k-images-idx3-ubyte.gz", mnist + "/t10k-labels-idx1-ubyte.gz"};
  auto const in = idx.open();
  edl::example a, b;
  std::string again;
  list records;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto const bytes = file.read(i);
    records.emplace_back(bytes);
    a.parse(bytes);
    in->read(0, i, b);
    REQUIRE(std::ranges::equal(a.float_values("image"), b.float_values("image")));
    REQUIRE(a.integer("label") == b.integer("label"));
    encode(a, again);
    REQUIRE(again.size() == bytes.size());
  }
  // The same chunks; only the compressed bytes are the library's own choice.
  support::scratch const dir;
  auto const& chunks = file.index().chunks;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < chunks[0].records; ++i) largest += records[i].size();
  write(dir / "m", records, {.max_chunk_bytes = largest + 100});
  recordio_reader mine{dir / "m"};
  REQUIRE(mine.index().chunks.size() == chunks.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) CHECK(mine.index().chunks[i].records == chunks[i].records);
  for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(mine.read(i) == records[i]);
}

TEST_CASE("chunks are cut as the Go writer cuts them") {
  support::scratch const dir;
  write(dir / "f", {"12345", "1234", "12"}, {.with = compressor::none, .max_chunk_bytes = 10});
  auto const index = index_recordio(dir / "f");
  REQUIRE(index.chunks.size() == 2);
  CHECK(index.chunks[1].offset == 20 + 9 + 8);
  CHECK(index.chunks[1].first == 2);
  CHECK(index.records == 3);
  CHECK(has(failure([&] { write(dir / "g", {"1234567890"}, {.max_chunk_bytes = 10}); }), "has 10 bytes"));
  CHECK(!std::filesystem::exists(dir / "g"));
  CHECK(!failure([&] { recordio_writer(dir / "h", {.max_chunk_bytes = 0}); }).empty());
}

TEST_CASE("any records come back, in any order, with any compressor and chunk size") {
  support::scratch const dir;
  list records;
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::string r(std::size_t(edl::random_stream{1, 0}.below(400, i)) * (i % 3), char('a' + i % 26));
    records.push_back(std::move(r));  // every third is empty
  }
  records.push_back(std::string(200'000, 'z'));
  for (auto with : {compressor::none, compressor::snappy, compressor::gzip})
    for (std::size_t chunk : {200'001u, 1u << 20, 32u << 20}) {
      write(dir / "f", records, {.with = with, .max_chunk_bytes = chunk});
      CHECK(read(dir / "f") == records);
      recordio_reader r{std::make_shared<recordio_index const>(index_recordio(dir / "f")),
                        1};  // the least cache
      for (std::uint64_t i = 0; i < 900; ++i) {
        auto const n = edl::random_stream{2, 0}.below(records.size(), i);
        REQUIRE(r.read(n) == records[std::size_t(n)]);
      }
    }
}

TEST_CASE("snappy frames that do not follow the records are read too") {
  support::scratch const dir;
  list const records{"Hello", "", std::string(100'000, 'x'), "World"};
  std::string raw;
  for (auto const& r : records) {
    auto const n = std::uint32_t(r.size());
    raw.append(reinterpret_cast<char const*>(&n), 4).append(r);
  }
  for (std::size_t const piece : {1u, 4u, 7u, 65536u, 1u << 20}) {
    std::string stored;
    for (std::size_t at = 0; at < raw.size(); at += piece)
      edl::data::detail::append_snappy_frames(std::string_view(raw).substr(at, piece), stored);
    std::uint32_t const header[5]{0x01020304, edl::data::detail::crc32(stored), 1,
                                  std::uint32_t(stored.size()), 4};
    support::write(dir / "f", std::string(reinterpret_cast<char const*>(header), 20) + stored);
    CHECK(read(dir / "f") == records);
  }
}

TEST_CASE("the cache holds chunks of several files") {
  support::scratch const dir;
  std::vector<std::shared_ptr<recordio_index const>> files;
  for (int f = 0; f < 3; ++f) {
    list records;
    for (int i = 0; i < 20; ++i) records.push_back(std::to_string(100 * f + i));
    auto const path = dir / std::to_string(f);
    write(path, records, {.with = f == 1 ? compressor::gzip : compressor::snappy, .max_chunk_bytes = 12});
    files.push_back(std::make_shared<recordio_index const>(index_recordio(path)));
  }
  for (std::size_t const bytes : {std::size_t(0), std::size_t(1000), std::size_t(1) << 20}) {
    recordio_reader r{files[0], bytes};
    for (std::uint64_t i = 0; i < 500; ++i) {
      auto const f = edl::random_stream{7, 0}.below(3, i), n = edl::random_stream{7, 1}.below(20, i);
      r.open(files[f]);
      REQUIRE(r.read(n) == std::to_string(100 * f + n));
    }
  }
}

TEST_CASE("empty records and many small chunks") {
  support::scratch const dir;
  list const records{"", "", "a", "", "bc", ""};
  for (auto with : {compressor::none, compressor::snappy, compressor::gzip}) {
    write(dir / "f", records, {.with = with, .max_chunk_bytes = 3});
    CHECK(read(dir / "f") == records);
  }
  write(dir / "f", {""});
  CHECK(read(dir / "f") == list{""});
}

TEST_CASE("a file without records is a file") {
  support::scratch const dir;
  CHECK(write(dir / "f", {}).empty());
  recordio_reader r{dir / "f"};
  CHECK(r.records() == 0);
  CHECK(has(failure([&] { r.read(0); }), "no record 0"));
}

TEST_CASE("the older layout is recognised and read") {
  support::scratch const dir;
  for (std::uint32_t compressor : {1u, 2u, 3u}) {
    support::write(dir / "f", python_chunk(hello, compressor) + python_chunk({"more", ""}, compressor));
    CHECK(index_recordio(dir / "f").layout == recordio_layout::python);
    CHECK(read(dir / "f") == list{"Hello", "World,", "RecordIO!", "more", ""});
  }
}

TEST_CASE("where both layouts could be meant the checksum decides") {
  support::scratch const dir;
  // What `go` calls a payload's size `python` calls a compressor. No writer makes the first file, but it is
  // told apart.
  std::string const payload = "ab";
  std::uint32_t const header[5]{0x01020304, edl::data::detail::crc32(payload), 0, 2, 0};
  support::write(dir / "f", std::string(reinterpret_cast<char const*>(header), 20) + payload);
  CHECK(has(failure([&] { index_recordio(dir / "f"); }), "a payload of 2 bytes claims to hold no records"));
  support::write(dir / "f", python_chunk({}, 1) + python_chunk(hello, 1));
  CHECK(index_recordio(dir / "f").layout == recordio_layout::python);
  CHECK(read(dir / "f") == hello);
}

TEST_CASE("damage is named: file, chunk, offset, expected and found") {
  support::scratch const dir;
  auto const good = support::from_hex(hello_none);
  auto const index = [&](std::string const& bytes) {
    return failure([&] { index_recordio(support::write(dir / "f", bytes)); });
  };
  auto const read_first = [&](std::string const& bytes) {
    return failure([&] { recordio_reader(support::write(dir / "f", bytes)).read(0); });
  };
  CHECK(has(index("hello"), (dir / "f") + ": chunk 0 at byte 0: a header has 20 bytes, 5 are left"));
  CHECK(has(index("This is no RecordIO file at all"),
            "expected the RecordIO magic number 0x01020304, found 0x73696854"));
  CHECK(has(index(good + "abc"), "chunk 1 at byte 52: a header has 20 bytes, 3 are left"));
  CHECK(has(index(good.substr(0, 40)), "a payload of 32 bytes is expected, 20 are left"));
  CHECK(has(index(with_number(good, 8, 7)), "expected a compressor from 0 to 2, found 7"));
  CHECK(has(index(with_number(good, 12, 0xFFFFFFFF)), "4294967295 bytes is expected, 32 are left"));
  CHECK(has(index(with_number(good, 16, 0xFFFFFFFF)), "4294967295 records in 32 bytes cannot be"));
  CHECK(has(read_first(with_number(good, 4, 1)),
            "checksum 0x00000001 is expected, its 32 bytes have 0xa1748c14"));
  CHECK(has(read_first(with_number(good, 16, 4)), "record 3 of 4 runs over the end"));
  CHECK(has(read_first(with_number(good, 16, 2)), "13 of 32 unpacked bytes are left after its 2 records"));
}

TEST_CASE("a damaged chunk hides its own records only") {
  support::scratch const dir;
  auto bytes =
      write(dir / "f", {"aaaa", "bbbb", "cccc", "dddd"}, {.with = compressor::none, .max_chunk_bytes = 8});
  auto const index = index_recordio(dir / "f");
  REQUIRE(index.chunks.size() == 2);
  bytes[25] = 'x';
  support::write(dir / "f", bytes);
  recordio_reader r{dir / "f"};
  auto const why = failure([&] { r.read(1); });
  CHECK(has(why, "chunk 0"));
  CHECK(failure([&] { r.read(0); }) == why);
  CHECK(r.read(2) == "cccc");
  CHECK(r.read(3) == "dddd");
}

TEST_CASE("skipping, an index ends where the damage begins and says why") {
  support::scratch const dir;
  auto const good = support::from_hex(hello_none);
  support::write(dir / "f", good + with_number(good, 0, 0) + good);
  CHECK(has(failure([&] { index_recordio(dir / "f"); }), "chunk 1 at byte 52"));
  auto const index = index_recordio(dir / "f", true);
  CHECK(index.records == 3);
  CHECK(has(index.damage, "chunk 1 at byte 52"));
}

TEST_CASE("a file that changes after it was indexed is noticed") {
  support::scratch const dir;
  auto const good = support::from_hex(hello_none);
  support::write(dir / "f", good + good);
  auto const index = std::make_shared<recordio_index const>(index_recordio(dir / "f"));
  recordio_reader open{index};
  CHECK(open.read(0) == "Hello");
  std::filesystem::resize_file(dir / "f", 60);
  CHECK(has(failure([&] { open.read(3); }), "it was changed"));  // while open
  CHECK(has(failure([&] { recordio_reader(index).read(3); }), "has shrunk"));
  support::write(dir / "f", good + with_number(good, 16, 2));
  CHECK(has(failure([&] { recordio_reader(index).read(3); }), "changed since"));
}

TEST_CASE("every flipped byte and every truncation is an error or gives the same records") {
  support::scratch const dir;
  std::vector<std::string> files;
  for (auto with : {compressor::none, compressor::snappy, compressor::gzip})
    files.push_back(write(dir / "f", hello, {.with = with, .max_chunk_bytes = 12}));
  for (std::uint32_t compressor : {1u, 2u, 3u}) files.push_back(python_chunk(hello, compressor));
  int refused = 0;
  for (auto const& good : files) {
    auto const same_or_error = [&](std::string const& bytes, std::string const& changed) {
      support::write_anew(dir / "f", bytes);
      list found;
      INFO(good.size(), " bytes, compressor ", int(good[8]), ", ", changed);
      if (failure([&] { found = read(dir / "f"); }).empty())
        CHECK((found == hello || bytes.size() < good.size()));
      else
        ++refused;
      // A file cut between chunks is a shorter file.
      CHECK(std::equal(found.begin(), found.end(), hello.begin()));
    };
    for (std::size_t i = 0; i < good.size(); ++i)
      for (int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF}) {
        auto damaged = good;
        damaged[i] = char(damaged[i] ^ flip);
        same_or_error(damaged, "byte " + std::to_string(i) + " flipped by " + std::to_string(flip));
      }
    for (std::size_t cut = 0; cut < good.size(); ++cut)
      same_or_error(good.substr(0, cut), "cut to " + std::to_string(cut));
  }
  CHECK(refused > 4000);
}

TEST_CASE("damaged at random, with the checksum put right again, nothing worse than an error happens") {
  support::scratch const dir;
  std::vector<std::string> seeds{support::from_hex(hello_none), support::from_hex(hello_snappy)};
  seeds.push_back(write(dir / "f", hello, {.with = compressor::gzip}));
  for (std::uint32_t compressor : {1u, 2u, 3u}) seeds.push_back(python_chunk(hello, compressor));
  int refused = 0;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    auto const which = std::size_t(i % seeds.size());
    auto bytes = support::mutate(seeds[which], edl::random_stream{3, i});
    if (i % 4 && bytes.size() > 20) {
      auto const payload = std::string_view(bytes).substr(20);
      bool const python = which >= 3;
      bytes = with_number(bytes, python ? 8 : 4,
                          python ? edl::data::detail::crc32c(payload) : edl::data::detail::crc32(payload));
      if (i % 3) bytes = with_number(bytes, python ? 16 : 12, std::uint32_t(payload.size()));
    }
    support::write_anew(dir / "f", bytes);
    refused += !failure([&] { read(dir / "f"); }).empty();
  }
  CHECK(refused > 3000);
}

}  // namespace recordio_test

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
  CHECK(has(failure([&] { in->read(1, 3, e); }), (dir / "c") + ": no record 3: the file has 3"));
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
  CHECK(has(failure([&] { in->read(0, 1, e); }), (dir / "f") + ": record 1: is not a tf.train.Example"));
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
  CHECK(has(failure([&] { in->read(1, 20, e); }), "no record 20: the file has 20"));
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
  CHECK(has(failure([&] { open_source(path)->open()->read(0, 0, e); }), "is not a tf.train.Example"));
}

TEST_CASE("a length that cannot be is refused before there is memory for it") {
  support::scratch const dir;
  std::string const size = support::from_hex("ffffffffffffff7f");
  std::uint32_t const sum = detail::masked(detail::crc32c(size));
  support::write(dir / "a.tfrecord", size + std::string(reinterpret_cast<char const*>(&sum), 4) + "12345678");
  CHECK(has(failure([&] { open_source(dir / "a.tfrecord"); }), "has 9223372036854775807 bytes, at most"));
}

}  // namespace tfrecord_test
