// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/sorted_by.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>

#include "compute/data/support.hpp"
#include "edl/compute/data/source.hpp"

namespace sorted_by_test {

using namespace edl::data;

namespace {

/// Of a table with a number, a label by `label(row)`, a text that is always the same, and a rare flag.
std::string found(int rows, std::function<int(int)> const& label) {
  support::scratch const dir;
  std::string text = "n,y,same,rare\n";
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i) + "," + std::to_string(label(i)) + ",a," + std::to_string(i % 10 == 3) + "\n";
  return sorted_by(*open_source(support::write(dir / "t.csv", text)));
}

}  // namespace

TEST_CASE("a table that is sorted by a feature of few values says by which") {
  edl::random_stream const random(1);
  CHECK(found(3000, [](int i) { return i / 1000; }) == "y");
  CHECK(found(3000, [](int i) { return i / 60; }) == "y");
  CHECK(found(1000, [](int i) { return i < 500 ? 1 : 0; }) == "y");
  CHECK(found(3000, [](int i) { return i % 3; }) == "");
  CHECK(found(3000, [&](int i) { return int(random.below(2, std::uint64_t(i))); }) == "");
  CHECK(found(3000, [&](int i) { return random.below(10, std::uint64_t(i)) < 7 ? 1 : 0; }) == "");
  CHECK(found(200, [](int i) { return i / 100; }) == "");  // too few
}

TEST_CASE("files of one class each are as one sorted file, and what cannot be read says nothing") {
  support::scratch const dir;
  for (int part = 0; part < 4; ++part) {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += "{\"x\": " + std::to_string(i) + ", \"y\": \"" + char('a' + part) + "\"}\n";
    support::write(dir / ("part-" + std::to_string(part) + ".jsonl"), text);
  }
  CHECK(sorted_by(*open_source(dir / "*.jsonl")) == "y");
  std::string bad;
  for (int i = 0; i < 100; ++i) bad += "no JSON\n";
  support::write(dir / "part-4.jsonl", bad);
  CHECK(sorted_by(*open_source(dir / "*.jsonl")) == "");
}

TEST_CASE("a reader of one's own that fails says nothing, whatever it throws") {
  struct failing : source {
    struct reading : reader {
      void read(std::size_t, std::uint64_t, edl::example&) override { throw std::runtime_error("no"); }
    };
    std::vector<shard> all{{"own", 1000}};
    std::vector<shard> const& shards() const override { return all; }
    std::unique_ptr<reader> open() const override { return std::make_unique<reading>(); }
  };
  CHECK(sorted_by(failing()) == "");
}

}  // namespace sorted_by_test
