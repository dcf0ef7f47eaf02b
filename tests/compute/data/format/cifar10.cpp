// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/cifar10.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"

namespace cifar10_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

/// Two records; a pixel's value says its channel and, modulo 64, its place.
std::string two_records() {
  std::string s;
  for (char label : {'\x03', '\x09'}) {
    s.push_back(label);
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < 1024; ++i) s.push_back(char(64 * c + (i + label) % 64));
  }
  return s;
}

}  // namespace

TEST_CASE("planes become channels-last images") {
  support::scratch const dir;
  cifar10_source const s{{support::write(dir / "data_batch_1.bin", two_records()),
                          support::write(dir / "data_batch_2.bin", two_records().substr(3073))}};
  CHECK(s.shards() == std::vector<shard>{{"data_batch_1.bin", 2}, {"data_batch_2.bin", 1}});
  auto const in = s.open();
  edl::example e;
  in->read(0, 1, e);
  CHECK(e.integer("label") == 9);
  auto const image = e.float_values("image");
  REQUIRE(image.size() == 3072);
  for (std::size_t i = 0; i < 1024; ++i)
    for (std::size_t c = 0; c < 3; ++c) REQUIRE(image[3 * i + c] == float(64 * c + (i + 9) % 64));
  in->read(1, 0, e);
  CHECK(e.integer("label") == 9);
  CHECK(has(failure([&] { in->read(0, 2, e); }), "no record 2"));
  CHECK(has(failure([&] { in->read(2, 0, e); }), "no shard 2"));
}

TEST_CASE("damage to CIFAR-10's files is told") {
  support::scratch const dir;
  auto const path = support::write(dir / "f.bin", two_records());
  auto const opened = [&](std::string const& bytes) {
    return failure([&] { cifar10_source({support::write(path, bytes)}); });
  };
  CHECK(has(opened(""), "expected records of 3073 bytes, 0 bytes"));
  CHECK(has(opened(two_records() + "x"), "are 2 of them and 1 more"));
  auto bad = two_records();
  bad[3073] = '\x0a';
  support::write(path, bad);
  cifar10_source const s{{path}};
  auto const in = s.open();
  edl::example e;
  CHECK(failure([&] { in->read(0, 0, e); }).empty());
  CHECK(failure([&] { in->read(0, 1, e); }) ==
        path + ": record 1 at byte 3073: expected a label from 0 to 9, found 10");
  std::filesystem::resize_file(path, 4000);
  CHECK(has(failure([&] { in->read(0, 1, e); }), "it was changed"));
  CHECK(has(failure([&] { in->read(0, 0, e); }), "has 4000 bytes but had 6146"));
}

TEST_CASE("CIFAR-10 files damaged at random are errors or other images") {
  support::scratch const dir;
  int refused = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    auto bytes = support::mutate(two_records(), {7, i});
    if (i % 2) bytes.resize(6146);
    support::write_anew(dir / "f.bin", bytes);
    refused += !failure([&] {
                  cifar10_source const s{{dir / "f.bin"}};
                  edl::example e;
                  auto const in = s.open();
                  for (std::uint64_t n = 0; n < s.shards()[0].records; ++n) in->read(0, n, e);
                }).empty();
  }
  CHECK(refused > 500);
  CHECK(refused < 2000);
}

}  // namespace cifar10_test
