// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/convert.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/array_file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/synthetic.hpp"

namespace convert_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

std::size_t entries(std::string const& directory) {
  return std::size_t(std::distance(std::filesystem::directory_iterator(directory), {}));
}

/// Fails at its third record.
class broken_source : public source {
 public:
  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override {
    struct broken : reader {
      void read(std::size_t, std::uint64_t record, edl::example& into) override {
        if (record == 2) throw edl::data_error("record 2 is broken");
        edl::example_builder(into).integer("label", 1);
      }
    };
    return std::make_unique<broken>();
  }

 private:
  std::vector<shard> shards_{{"broken", 5}};
};

}  // namespace

TEST_CASE("what was converted is what was there, shard by shard") {
  support::scratch const dir;
  synthetic_source const from{{.records = 2500, .records_per_shard = 700}};
  for (auto with : {compressor::none, compressor::snappy, compressor::gzip}) {
    auto const out = dir / ("a/b/c" + std::to_string(int(with)));
    std::vector<std::uint64_t> seen;
    auto const done = convert(from, out + "/",
                              {.records_per_shard = 1000,
                               .recordio = {.with = with, .max_chunk_bytes = 100'000},
                               .progress = [&](std::uint64_t n, std::uint64_t of) {
                                 CHECK(of == 2500);
                                 seen.push_back(n);
                               }});
    CHECK(done.records == 2500);
    CHECK(done.files == 3);
    CHECK(seen == std::vector<std::uint64_t>{1000, 2000, 2500});
    auto const to = open_source(out);
    CHECK(to->shards() ==
          std::vector<shard>{{"data-00000", 1000}, {"data-00001", 1000}, {"data-00002", 500}});
    auto const in = from.open(), again = to->open();
    edl::example a, b;
    for (std::uint64_t i = 0; i < 2500; i += 7) {
      in->read(std::size_t(i / 700), i % 700, a);
      again->read(std::size_t(i / 1000), i % 1000, b);
      REQUIRE(a.integer("label") == b.integer("label"));
      REQUIRE(std::ranges::equal(a.float_values("image"), b.float_values("image")));
    }
  }
  CHECK(entries(dir / "a/b") == 3);  // and nothing unfinished
}

TEST_CASE("a fraction, another prefix") {
  support::scratch const dir;
  synthetic_source const from{{.records = 100}};
  CHECK(convert(from, dir / "x", {.prefix = "part-", .fraction = 0.15}).records == 15);
  CHECK(open_source(dir / "x")->shards() == std::vector<shard>{{"part-00000", 15}});
  CHECK(convert(from, dir / "y", {.fraction = 1e-9}).records == 1);
  for (double f : {0.0, -1.0, 1.1, std::nan("")})
    CHECK(has(failure([&] { convert(from, dir / "z", {.fraction = f}); }), "(0, 1]"));
  for (char const* p : {".x", "_x", "a/b"})
    CHECK(!failure([&] { convert(from, dir / "z", {.prefix = p}); }).empty());
  CHECK(!failure([&] { convert(from, dir / "z", {.records_per_shard = 0}); }).empty());
  CHECK(!std::filesystem::exists(dir / "z"));
}

TEST_CASE("nothing is overwritten, and a failure leaves nothing") {
  support::scratch const dir;
  support::write(dir / "full/f", "x");
  synthetic_source const from{{.records = 10}};
  CHECK(failure([&] { convert(from, dir / "full"); }) ==
        (dir / "full") + ": already exists; remove it, or write elsewhere");
  std::filesystem::create_directory(dir / "empty");
  CHECK(convert(from, dir / "empty").files == 1);
  CHECK(has(failure([&] { convert(broken_source(), dir / "out", {.records_per_shard = 1}); }),
            "record 2 is broken"));
  CHECK(entries(dir.path()) == 2);
  CHECK(!failure([&] { convert(from, dir / "full/f/x"); }).empty());
}

TEST_CASE("MNIST's test images go through RecordIO unchanged") {
  auto const folder = support::data_sets("mnist");
  if (folder.empty()) return;
  support::scratch const dir;
  auto const from = open_source(folder + "/test");
  CHECK(convert(*from, dir / "t", {.records_per_shard = 4096, .fraction = 0.5}).files == 2);
  auto const to = open_source(dir / "t");
  auto const in = from->open(), again = to->open();
  edl::example a, b;
  for (std::uint64_t i = 0; i < 5000; i += 13) {
    in->read(0, i, a);
    again->read(std::size_t(i / 4096), i % 4096, b);
    REQUIRE(a.integer("label") == b.integer("label"));
    REQUIRE(std::ranges::equal(a.float_values("image"), b.float_values("image")));
  }
}

}  // namespace convert_test
