// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/idx.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"

namespace idx_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

std::string idx(std::vector<std::uint32_t> const& dims, std::string const& values) {
  std::string s{'\0', '\0', '\x08', char(dims.size())};
  for (auto d : dims)
    for (int shift : {24, 16, 8, 0}) s.push_back(char(d >> shift));
  return s + values;
}

std::string gzipped(std::string const& raw) {
  std::string packed;
  detail::pack_gzip(raw, packed);
  return packed;
}

std::string const images =
    idx({3, 2, 2}, std::string("\x00\x01\x02\x03\x10\x11\x12\x13\xfc\xfd\xfe\xff", 12));
std::string const labels = idx({3}, std::string("\x07\x00\x09", 3));

}  // namespace

TEST_CASE("images and labels, packed or not") {
  support::scratch const dir;
  for (bool packed : {false, true}) {
    idx_source const s{support::write(dir / "images", packed ? gzipped(images) : images),
                       support::write(dir / "labels", packed ? gzipped(labels) : labels)};
    CHECK(s.shards() == std::vector<shard>{{"images", 3}});
    auto const in = s.open();
    edl::example e;
    in->read(0, 2, e);
    CHECK(e.integer("label") == 9);
    CHECK(std::vector<float>(e.float_values("image").begin(), e.float_values("image").end()) ==
          std::vector<float>{252, 253, 254, 255});
    CHECK(has(failure([&] { in->read(0, 3, e); }), "no record 3"));
    CHECK(has(failure([&] { in->read(1, 0, e); }), "no record"));
  }
}

TEST_CASE("what is no pair of images and labels says why") {
  support::scratch const dir;
  auto const image_error = [&](std::string const& bytes) {
    return failure([&] { read_idx(support::write(dir / "f", bytes)); });
  };
  CHECK(has(image_error(""),
            "expected an IDX magic number 0x00000801 to 0x00000804 at byte 0, found the end of the file"));
  CHECK(has(image_error("hello"), (dir / "f") + ": expected an IDX magic number"));
  CHECK(has(image_error(std::string("\0\0\x0d\x01", 4)), "found 0x0d"));
  CHECK(has(image_error(std::string("\0\0\x08\x00", 4)), "found 0"));
  CHECK(has(image_error(std::string("\0\0\x08\x05", 4)), "found 5"));
  CHECK(has(image_error(images.substr(0, 9)), "ends within its header"));
  CHECK(has(image_error(images + "x"), "expected 12 bytes of values by its dimensions, found 13"));
  CHECK(has(image_error(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")), "more than"));
  CHECK(has(image_error(gzipped(images).substr(0, 20)), "cut off"));
  auto const pair_error = [&](std::string const& i, std::string const& l) {
    return failure([&] { idx_source(support::write(dir / "i", i), support::write(dir / "l", l)); });
  };
  CHECK(has(pair_error(labels, labels), "expected images"));
  CHECK(has(pair_error(images, images), "expected labels"));
  CHECK(has(pair_error(images, idx({2}, "ab")), "has 2 labels for 3 images"));
  CHECK(has(pair_error(idx({0, 2, 2}, ""), idx({0}, "")), "no images"));
}

TEST_CASE("IDX files damaged at random are errors or other images") {
  support::scratch const dir;
  support::write_anew(dir / "l", labels);
  int refused = 0, read = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    support::write_anew(dir / "i", support::mutate(i % 2 ? images : gzipped(images), {6, i}));
    auto const why = failure([&] {
      idx_source const s{dir / "i", dir / "l"};
      edl::example e;
      auto const in = s.open();
      for (std::uint64_t n = 0; n < s.shards()[0].records; ++n) in->read(0, n, e);
    });
    ++(why.empty() ? read : refused);
  }
  CHECK(refused > 1000);
  CHECK(read > 100);
}

TEST_CASE("MNIST as published") {
  auto const folder = support::data_sets("mnist");
  if (folder.empty()) return;
  idx_source const s{folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz"};
  CHECK(s.shards() == std::vector<shard>{{"t10k-images-idx3-ubyte.gz", 10000}});
  auto const in = s.open();
  edl::example e;
  int counts[10]{};
  for (std::uint64_t i = 0; i < 10000; ++i) {
    in->read(0, i, e);
    REQUIRE(e.float_values("image").size() == 784);
    ++counts[e.integer("label")];
  }
  CHECK(counts[1] == 1135);
  CHECK(counts[5] == 892);
}

}  // namespace idx_test
