// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/array_file.hpp"

#include <doctest/doctest.h>
#include <zip.h>

#include <algorithm>
#include <cstring>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"

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

namespace numpy_test {

using namespace edl::data;
using edl::example;
using support::failure, support::has;

namespace {

std::string npy(std::string const& type, std::string const& shape, std::string const& values,
                std::string const& order = "False", int version = 1) {
  std::string text = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (" + shape + "), }";
  std::size_t const prefix = version == 1 ? 10 : 12;
  while ((prefix + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string head = "\x93NUMPY";
  head += char(version);
  head += '\0';
  auto const size = std::uint32_t(text.size());
  head.append(reinterpret_cast<char const*>(&size), version == 1 ? 2 : 4);
  return head + text + values;
}

template <class T>
std::string bytes(std::vector<T> const& values) {
  std::string all(values.size() * sizeof(T), '\0');
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}

void write_npz(std::string const& path, std::vector<std::pair<std::string, std::string>> const& members,
               bool packed) {
  int code = 0;
  ::zip_t* const zip = ::zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE(zip);
  for (auto const& [name, content] : members) {
    auto const index =
        ::zip_file_add(zip, name.c_str(), ::zip_source_buffer(zip, content.data(), content.size(), 0), 0);
    REQUIRE(index >= 0);
    ::zip_set_file_compression(zip, std::uint64_t(index), packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  REQUIRE(::zip_close(zip) == 0);
}

std::string const three_images = npy("<f4", "3, 2, 2", bytes<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})),
                  three_labels = npy("|u1", "3,", bytes<std::uint8_t>({7, 0, 255}));

void check_three(source const& s) {
  auto const in = s.open();
  example e;
  in->read(0, 1, e);
  CHECK(std::ranges::equal(e.float_values("x"), std::vector<float>{4, 5, 6, 7}));
  CHECK(e.integer("y") == 0);
  in->read(0, 2, e);
  CHECK(e.integer("y") == 255);
  CHECK(e.float_values("x")[3] == 11);
  CHECK(has(failure([&] { in->read(0, 3, e); }), "no record 3: the file has 3"));
}

}  // namespace

TEST_CASE("a directory, a list and an archive of arrays are the same records") {
  support::scratch const dir;
  support::write(dir / "set/x.npy", three_images);
  support::write(dir / "set/y.npy", three_labels);
  write_npz(dir / "stored.npz", {{"x.npy", three_images}, {"y.npy", three_labels}}, false);
  write_npz(dir / "packed.npz", {{"x.npy", three_images}, {"y.npy", three_labels}}, true);
  for (std::string const& path :
       {dir / "set", dir / "set/*.npy", (dir / "set/x.npy") + "," + (dir / "set/y.npy"), dir / "stored.npz",
        dir / "packed.npz"}) {
    CAPTURE(path);
    auto const s = open_source(path);
    REQUIRE(records(*s) == 3);
    check_three(*s);
    CHECK(s->digest(0) != 0);
    CHECK(s->digest(1) == 0);
  }
  CHECK(open_source(dir / "set")->shards()[0].name == "set");
  auto const before = open_source(dir / "set")->digest(0);
  support::write_anew(dir / "set/y.npy", npy("|u1", "3,", bytes<std::uint8_t>({7, 1, 255})));
  CHECK(open_source(dir / "set")->digest(0) != before);
}

TEST_CASE("the extents of an array are compared with those that it is read in") {
  support::scratch const dir;
  std::vector<float> const values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  support::write(dir / "x.npy", npy("<f4", "2, 2, 3", bytes<float>(values)));
  support::write(dir / "y.npy", npy("<f4", "2, 6", bytes<float>(values)));
  auto const s = open_source((dir / "x.npy") + "," + (dir / "y.npy"));
  example e;
  s->open()->read(0, 1, e);
  CHECK(std::ranges::equal(e.extents("x"), std::vector<std::size_t>{2, 3}));
  CHECK(e.extents("y").empty());
  CHECK(e.floats("x", {2, 3})(1, 2) == 11);
  CHECK(e.floats("x", {1, 2, 3})(0, 0, 1) == 7);  // extents of 1 count for nothing
  CHECK(e.floats("x", {6})(5) == 11);             // what is read flat may lie in any
  CHECK(e.floats("x")(5) == 11);
  CHECK(e.floats("y", {3, 2})(2, 1) == 11);  // a flat list may be read in any
  CHECK(has(failure([&] { e.floats("x", {3, 2}); }), "'x' is 2 × 3, the network takes 3 × 2"));
  CHECK(has(failure([&] { xt::reshape_view(e.floats("x"), {3, 2}); }), "'x' is 2 × 3"));
  CHECK(
      has(failure([&] { e.floats("x", {2, 2}); }), "'x' has 6 values (2 × 3), the network takes 4 (2 × 2)"));
  CHECK(std::ranges::equal(e.extents("none"), std::vector<std::size_t>{}));
}

TEST_CASE("all numbers of the processor are read, and others are refused with a way out") {
  support::scratch const dir;
  example e;
  auto const read = [&](std::string const& file) {
    return failure([&] { numpy_source({support::write_anew(dir / "a.npy", file)}).open()->read(0, 0, e); });
  };
  CHECK(read(npy("<f8", "1,", bytes<double>({2.5}))) == "");
  CHECK(e.floating("a") == 2.5f);
  CHECK(read(npy("|i1", "1,", bytes<std::int8_t>({-3}))) == "");
  CHECK(e.integer("a") == -3);
  CHECK(read(npy("|u1", "1, 2, 2", bytes<std::uint8_t>({0, 9, 200, 255}))) == "");
  CHECK(e.floats("a")(2) == 200);  // a picture
  CHECK(read(npy("<i2", "1,", bytes<std::int16_t>({-300}))) == "");
  CHECK(e.integer("a") == -300);
  CHECK(read(npy("<u2", "1,", bytes<std::uint16_t>({65535}))) == "");
  CHECK(e.integer("a") == 65535);
  CHECK(read(npy("<i4", "1, 1", bytes<std::int32_t>({-70000}), "False", 2)) == "");
  CHECK(e.integer("a") == -70000);
  CHECK(read(npy("<u4", "1,", bytes<std::uint32_t>({4'000'000'000}))) == "");
  CHECK(e.integer("a") == 4'000'000'000);
  CHECK(read(npy("<i8", "1,", bytes<std::int64_t>({-5}), "False", 3)) == "");
  CHECK(e.integer("a") == -5);
  CHECK(read(npy("|b1", "1,", "\x01")) == "");
  CHECK(e.integer("a") == 1);
  CHECK(has(read(npy("<u8", "1,", bytes<std::uint64_t>({~0ull}))), "record 0 has a number above"));
  CHECK(has(read(npy(">f4", "1,", "1234")), "a.npy: has its numbers big end first"));
  CHECK(has(read(npy("<f2", "1,", "12")), "has values of type '<f2'; save a.astype('float32')"));
  CHECK(has(read(npy("|O", "1,", "12345678")),
            "has values of type '|O'; save texts as a column of a CSV file"));
  CHECK(has(read(npy("<c8", "1,", "12345678")), "has values of type '<c8'; save a.real and a.imag"));
  CHECK(has(read(npy("<U1", "1,", "1234")), "save texts as a column of a CSV file or as JSON lines"));
  CHECK(
      has(read(npy("<M8[D]", "1,", "12345678")), "save seconds: (a - a.min()) / numpy.timedelta64(1, 's')"));
  CHECK(has(read(npy("<f16", "1,", "12345678")), "a.astype('float64')"));
  CHECK(has(read(npy("<f4", "1, 1", "1234", "True")), "numpy.ascontiguousarray"));
  CHECK(has(read(npy("<f4", "", "1234")), "is a single number"));
}

TEST_CASE("headers that lie about sizes are refused") {
  support::scratch const dir;
  auto const read = [&](std::string const& file) {
    return failure([&] { numpy_source({support::write_anew(dir / "a.npy", file)}); });
  };
  CHECK(has(read(npy("<f4", "2,", "1234")), "its shape has more values than"));
  CHECK(has(read(npy("<f4", "1,", "12345678")), "its shape needs 4 bytes, but the file has 8"));
  CHECK(
      has(read(npy("<f4", "4294967296, 4294967296, 4294967296", "1234")), "its shape has more values than"));
  CHECK(has(read(npy("<f4", "99999999999999999999", "1234")), "has no header of an .npy file"));
  CHECK(has(read("\x93NUMPY"), "is no .npy file"));
  CHECK(has(read(""), "is no .npy file"));
  auto long_header = three_labels;
  long_header[8] = '\xff', long_header[9] = '\xff';
  CHECK(has(read(long_header), "has a header of 65535 bytes"));
  auto unknown = three_labels;
  unknown[6] = 9;
  CHECK(has(read(unknown), "has the unknown version 9"));
}

TEST_CASE("arrays that do not belong together, and archives that are damaged, are refused by name") {
  support::scratch const dir;
  support::write(dir / "set/x.npy", three_images);
  support::write(dir / "set/y.npy", npy("|u1", "2,", "ab"));
  CHECK(failure([&] { open_source(dir / "set"); }) ==
        (dir / "set/y.npy") + ": has 2 records, and " + (dir / "set/x.npy") + " has 3");
  write_npz(dir / "a.npz", {{"x.npy", three_images}, {"n", "hello, this is text"}}, true);
  CHECK(has(failure([&] { open_source(dir / "a.npz"); }), "a.npz:n: is no .npy file"));
  write_npz(dir / "b.npz", {{"x.npy", three_images}}, false);
  auto bad = support::read(dir / "b.npz");
  bad[200] = char(bad[200] ^ 1);
  support::write_anew(dir / "b.npz", bad);
  CHECK(has(failure([&] { open_source(dir / "b.npz"); }), "b.npz:x.npy: is damaged"));
  support::write_anew(dir / "b.npz", "nonsense");
  CHECK(has(failure([&] { open_source(dir / "b.npz"); }), "cannot be opened as a ZIP archive"));
}

TEST_CASE("arrays damaged at random are errors or other arrays") {
  support::scratch const dir;
  write_npz(dir / "good.npz", {{"x.npy", three_images}, {"y.npy", three_labels}}, true);
  std::string const archive = support::read(dir / "good.npz");
  int read = 0, refused = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    bool const packed = i % 2 == 0;
    auto const path = dir / (packed ? "m.npz" : "m.npy");
    support::write_anew(path, support::mutate(packed ? archive : three_images, {9, i}));
    auto const why = failure([&] {
      numpy_source const s({path});
      example e;
      auto const in = s.open();
      for (std::uint64_t n = 0; n < std::min<std::uint64_t>(s.shards()[0].records, 10); ++n)
        in->read(0, n, e), ++read;
    });
    refused += !why.empty();
  }
  CHECK(read > 500);
  CHECK(refused > 1000);
}

}  // namespace numpy_test
