// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/format/numpy.hpp"

#include <doctest/doctest.h>
#include <zip.h>

#include <algorithm>
#include <cstring>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"

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
  CHECK(has(failure([&] { in->read(0, 3, e); }), "there is no record 3, it has 3"));
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
  CHECK(has(read(npy("<f4", "1,", "12345678")), "its shape makes 4 bytes, and 8 are there"));
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
  CHECK(has(read(unknown), "is of version 9"));
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
