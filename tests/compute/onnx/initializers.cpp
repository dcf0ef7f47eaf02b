// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/onnx/initializers.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "edl/compute/onnx/graph.hpp"
#include "edl/compute/onnx/message.hpp"
#include "edl/core/error.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace initializers_test {

using edl::onnx::initializers, edl::onnx::message;
using floats = std::vector<float>;

namespace {

/// A tensor by its type and extents, whose numbers `fill` adds.
message tensor(std::string const& name, int type, std::vector<std::int64_t> const& dims) {
  message m;
  m.packed(1, dims).number(2, std::uint64_t(type)).text(8, name);
  return m;
}
std::string raw(std::vector<std::uint8_t> const& bytes) { return {bytes.begin(), bytes.end()}; }
std::string text_of(floats const& x) {
  return {reinterpret_cast<char const*>(x.data()), x.size() * sizeof(float)};
}

message& external(message& m, std::vector<std::pair<std::string, std::string>> const& entries) {
  for (auto const& [key, value] : entries) m.text(13, message().text(1, key).text(2, value).bytes());
  return m.number(14, 1);
}

std::string model(std::vector<message> const& tensors, std::string const& producer = "somebody") {
  message graph;
  graph.text(1, message().text(1, "x").text(2, "y").text(4, "Relu").bytes());  // is passed over
  for (message const& t : tensors) graph.text(5, t.bytes());
  message m;
  m.number(1, 8).text(2, producer).text(7, graph.bytes());
  m.text(14, message().text(1, "key").text(2, "value").bytes());
  return m.bytes();
}

struct files {
  scratch dir;

  std::string write(std::string const& content, std::string const& name = "m.onnx") const {
    std::ofstream(dir / name, std::ios::binary) << content;
    return dir / name;
  }
  std::string refused(std::string const& content) const {
    try {
      initializers const read(write(content));
    } catch (edl::error const& e) {
      return e.what();
    }
    return "nothing";
  }
};

}  // namespace

TEST_CASE("numbers of every form that others write are read") {
  files const f;
  f.write("????" + text_of({7, 8, 9}), "weights.bin");
  message packed = tensor("float_data", 1, {3});
  packed.packed(4, std::span<float const>(floats{1, -2, 0.5f}));
  message narrow = tensor("int32_data", 10, {2});
  narrow.packed(5, std::vector<std::int64_t>{0x3c00, 0xc000});
  message unpacked;  // each extent a field of its own
  unpacked.number(1, 2).number(1, 1).number(2, 16).text(8, "bfloat16").text(9, raw({0x80, 0x3f, 0x00, 0x40}));
  message outside = tensor("outside", 1, {2}), rest = tensor("rest", 1, {1});
  external(outside, {{"location", "weights.bin"}, {"offset", "4"}, {"length", "8"}});
  external(rest, {{"location", "weights.bin"}, {"offset", "12"}});
  initializers const m(f.write(model(
      {tensor("raw", 1, {2, 1}).text(9, text_of({3, 4})), packed, narrow, unpacked,
       tensor("float16", 10, {1}).text(9, raw({0x00, 0x3e})), outside, rest,
       tensor("scalar", 1, {}).text(9, text_of({6})), tensor("none", 1, {0, 5}),
       tensor("ids", 7, {1}).text(9, std::string(8, '\1')), tensor("texts", 8, {9}), tensor("", 1, {4})})));
  CHECK(m.producer() == "somebody");
  CHECK(m.notes().at("key") == "value");
  CHECK(m.all().size() == 11);  // a tensor without a name is nobody's weight
  auto const read = [&](char const* name) { return m.read(*m.find(name)); };
  CHECK(read("raw") == floats{3, 4});
  CHECK(m.find("raw")->dims == std::vector<std::uint64_t>{2, 1});
  CHECK(read("float_data") == floats{1, -2, 0.5f});
  CHECK(read("int32_data") == floats{1, -2});
  CHECK(read("bfloat16") == floats{1, 2});
  CHECK(m.find("bfloat16")->dims == std::vector<std::uint64_t>{2, 1});
  CHECK(read("float16") == floats{1.5f});
  CHECK(read("outside") == floats{7, 8});
  CHECK(read("rest") == floats{9});
  CHECK(read("scalar") == floats{6});
  CHECK(read("none").empty());
  CHECK(m.find("ids")->dtype == "I64");
  CHECK(m.find("texts")->dtype == "type 8");
  CHECK(m.find("other") == nullptr);
  CHECK_THROWS_WITH_AS(m.read(*m.find("ids")), doctest::Contains("tensor 'ids' of "), edl::error);
}

TEST_CASE("numbers that lie apart, files in other folders, and constants are read as well") {
  files const f;
  std::filesystem::create_directory(f.dir / "below");
  f.write(text_of({7, 8}), "below/weights.bin");
  message apart = tensor("apart", 1, {3}), pieces = tensor("pieces", 1, {3}),
          narrow = tensor("narrow", 10, {2});
  apart.real(4, 1).real(4, -2).real(4, 0.5f);
  pieces.packed(4, std::span<float const>(floats{1, -2})).real(4, 0.5f);
  narrow.number(5, 0x3c00).number(5, 0xc000);
  auto const outside = [](std::string const& name, std::string const& path) {
    message m = tensor(name, 1, {2});
    return external(m, {{"location", path}, {"length", "0"}});
  };
  auto const constant = [](std::string const& output, message const& value) {
    return message()
        .text(2, output)
        .text(4, "Constant")
        .text(5, message().text(1, "value").text(5, value.bytes()).number(20, 4).bytes())
        .bytes();
  };
  message graph;
  graph.text(1, constant("weight", tensor("", 1, {2}).text(9, text_of({3, 4}))));
  graph.text(1, constant("other", tensor("named", 1, {1}).text(9, text_of({5}))));
  for (message const& t : {apart, pieces, narrow, outside("a", "./below/weights.bin"),
                           outside("b", "below/../below/weights.bin")})
    graph.text(5, t.bytes());
  initializers const m(f.write(message().number(1, 8).text(7, graph.bytes()).bytes()));
  auto const read = [&](char const* name) { return m.read(*m.find(name)); };
  CHECK(m.all().size() == 7);
  CHECK(read("apart") == floats{1, -2, 0.5f});
  CHECK(read("pieces") == floats{1, -2, 0.5f});
  CHECK(read("narrow") == floats{1, -2});
  CHECK(read("a") == floats{7, 8});
  CHECK(read("b") == floats{7, 8});
  CHECK(read("weight") == floats{3, 4});
  CHECK(read("other") == floats{5});
  message few = tensor("w", 1, {2}), wide = tensor("w", 16, {1}), odd = tensor("w", 1, {1});
  CHECK(contains(f.refused(model({few.real(4, 1)})), "has 2 elements, and 1 numbers"));
  CHECK(contains(f.refused(model({wide.number(5, 0x10000)})), "a number of more than 16 bits"));
  CHECK(contains(f.refused(model({odd.number(4, 1)})), "numbers have another type"));
}

TEST_CASE("sizes, places and names that cannot be are told by the tensor") {
  files const f;
  f.write(std::string(16, 'x'), "beside");
  auto const one = [&](message const& t) { return f.refused(model({t})); };
  CHECK(contains(one(tensor("w", 1, {3}).text(9, text_of({1, 2}))),
                 "tensor 'w' has 3 elements of F32, and 8 bytes"));
  CHECK(contains(one(tensor("w", 1, {3})), "tensor 'w' has 3 elements of F32, and 0 bytes"));
  CHECK(contains(one(tensor("w", 1, {-1})), "more elements than a file can have"));
  CHECK(contains(one(tensor("w", 1, {1 << 30, 1 << 30, 1 << 30})), "more elements than a file can have"));
  CHECK(contains(one(tensor("w", 1, {1, 1, 1, 1, 1, 1, 1, 1, 1})), "more than 8 extents"));
  CHECK(contains(one(tensor("w", 1, {1}).text(9, text_of({1})).text(9, text_of({2}))), "not in one piece"));
  message narrow = tensor("w", 16, {1});
  CHECK(contains(one(narrow.packed(5, std::vector<std::int64_t>{0x10000})), "a number of more than 16 bits"));
  narrow = tensor("w", 16, {2});
  CHECK(contains(one(narrow.packed(5, std::vector<std::int64_t>{1})), "has 2 elements, and 1 numbers"));
  auto const twice = tensor("w", 1, {1}).text(9, text_of({1}));
  CHECK(contains(f.refused(model({twice, twice})), "tensor 'w' occurs twice"));

  auto const beside = [&](std::vector<std::pair<std::string, std::string>> const& entries) {
    message m = tensor("w", 1, {2});
    return one(external(m, entries));
  };
  REQUIRE(beside({{"location", "beside"}, {"offset", "8"}}) == "nothing");
  for (char const* path :
       {"../m.onnx", "/etc/passwd", "a/../../beside", "..", ".", "", "a\\b", "\x01@", "beside/"})
    CHECK(contains(beside({{"location", path}}), "only one beside or below the model is read"));
  CHECK(contains(beside({{"location", std::string("beside\0x", 8)}}), "only one beside or below"));
  CHECK(beside({{"location", "\x01@"}}).find('\x01') == std::string::npos);
  CHECK(contains(beside({{"location", "lacking"}}), "lacking"));
  std::filesystem::create_symlink("/etc/hostname", f.dir / "away");
  std::filesystem::create_symlink("beside", f.dir / "near");
  CHECK(contains(beside({{"location", "away"}}), "a link to /etc/hostname; only a file beside or below"));
  CHECK(beside({{"location", "near"}, {"offset", "8"}}) == "nothing");
  CHECK(contains(beside({{"location", "beside"}, {"offset", "17"}}), "begins behind the end of "));
  CHECK(contains(beside({{"location", "beside"}, {"offset", "9"}}), "ends behind the end of "));
  CHECK(contains(beside({{"location", "beside"}, {"offset", "8"}, {"length", "18446744073709551615"}}),
                 "ends behind"));
  CHECK(contains(beside({{"location", "beside"}, {"length", "4"}}), "has 2 elements of F32, and 4 bytes"));
  CHECK(contains(beside({{"location", "beside"}, {"offset", "-1"}}), "has '-1' as its offset"));
  CHECK(contains(beside({{"location", "beside"}, {"offset", "99999999999999999999"}}), "as its offset"));
}

TEST_CASE("what is no model, and one that is cut off anywhere, is told, and never read beyond its end") {
  files const f;
  CHECK(contains(f.refused(""), "it has no graph"));
  CHECK(contains(f.refused("\x3a\xff\xff\xff\xff\x0f"), "it is cut off"));
  CHECK(contains(f.refused(std::string(11, '\xff')), "a number is too long"));
  CHECK(contains(f.refused("\x07"), "it has a field that Protocol Buffers do not have"));
  std::string const whole = model({tensor("w", 1, {2}).text(9, text_of({1, 2}))});
  std::size_t const graph = whole.find("\x3a");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string const told = f.refused(whole.substr(0, n));
    CAPTURE(n);
    CHECK((told != "nothing" || n > graph + 2));
    CHECK(told.find('\n') == std::string::npos);
  }
}

TEST_CASE("a graph that edl writes is read, in one file and in two") {
  edl::parameter_layout const layout{.variables = {{"dense/kernel", {300, 2}, 0}, {"dense/bias", {2}, 600}},
                                     .parameters = 602};
  floats values(602);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i) / 8;
  files const f;
  for (std::uint64_t const most : {std::uint64_t(1) << 30, std::uint64_t(100)}) {
    edl::onnx::graph g(layout, values);
    g.note("edl_version_of_model", "12");
    g.enter("dense");
    g.variable("kernel", {1, 0});
    g.variable("bias");
    g.leave();
    g.write(f.dir / "g.onnx", most);
    initializers const m(f.dir / "g.onnx");
    CHECK(m.producer() == "edl");
    CHECK(m.notes().at("edl_version_of_model") == "12");
    CHECK(m.find("dense/kernel")->dims == std::vector<std::uint64_t>{2, 300});
    CHECK(m.find("dense/kernel")->file.starts_with("g.onnx.") == (most == 100));
    auto const kernel = m.read(*m.find("dense/kernel"));
    CHECK(kernel[1] == values[2]);
    CHECK(kernel[300] == values[1]);
    CHECK(m.read(*m.find("dense/bias")) == floats{75, 75.125f});
  }
}

}  // namespace initializers_test
