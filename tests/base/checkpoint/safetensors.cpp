// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/safetensors.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "base/wire/scratch.hpp"

namespace safetensors_test {

using namespace edl::checkpoint;

namespace {

std::string file_of(std::string const& header, std::string const& data) {
  std::uint64_t const n = header.size();
  std::string length(8, '\0');
  std::memcpy(length.data(), &n, 8);
  return length + header + data;
}

std::string rejection(scratch const& dir, std::string const& header, std::string const& data = {}) {
  spill(dir / "x.safetensors", file_of(header, data));
  return complaint([&] { safetensors_file file(dir / "x.safetensors"); });
}

template <class T>
edl::bytes bytes_of(T const& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

TEST_CASE("the smallest file of the format's own tests is read") {
  scratch const dir;
  std::string const header = R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})";
  spill(dir / "a", std::string("<\0\0\0\0\0\0\0", 8) + header + std::string(16, '\0'));
  safetensors_file const file(dir / "a");
  REQUIRE(file.tensors().size() == 1);
  tensor const* const t = file.find("test");
  REQUIRE(t);
  CHECK(t->dtype == "I32");
  CHECK(t->dims == std::vector<std::uint64_t>{2, 2});
  CHECK(file.find("tes") == nullptr);
  CHECK(file.metadata().empty());
}

TEST_CASE("a file is written as the format says") {
  scratch const dir;
  std::array<float, 4> const weights{1, -2, 0.5f, 0};
  std::array<std::int64_t, 1> const step{7};
  edl::durable_file out(dir / "a");
  write_safetensors(
      out,
      std::vector<tensor_source>{{.name = "w \"q\"", .dims = {2, 2}, .data = bytes_of(weights)},
                                 {.name = "empty", .dims = {0, 3}, .data = {}},
                                 {.name = "step", .dtype = "I64", .dims = {}, .data = bytes_of(step)}},
      {{"format", "edl"}});
  out.commit();
  std::string const content = slurp(dir / "a");
  std::string expected =
      R"({"__metadata__":{"format":"edl"},"w \"q\"":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("empty":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},)"
      R"("step":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})";
  while ((8 + expected.size()) % 64 != 0) expected += ' ';
  std::string data(24, '\0');
  std::memcpy(data.data(), weights.data(), 16);
  data[16] = 7;
  CHECK(content == file_of(expected, data));
  CHECK(out.size() == content.size());

  safetensors_file const in(dir / "a");
  CHECK(in.crc32() == out.crc32());
  CHECK(in.metadata().at("format") == "edl");
  std::array<float, 2> middle{};
  in.read(*in.find("w \"q\""), 4, std::as_writable_bytes(std::span(middle)));
  CHECK(middle == std::array<float, 2>{-2, 0.5f});
  CHECK(contains(
      complaint([&] { in.read(*in.find("w \"q\""), 12, std::as_writable_bytes(std::span(middle))); }),
      "has no bytes [12, 20)"));
}

TEST_CASE("what cannot be written is refused") {
  scratch const dir;
  std::array<float, 4> const four{};
  auto const refused = [&](std::vector<tensor_source> const& tensors) {
    return complaint([&] {
      edl::durable_file out(dir / "a");
      write_safetensors(out, tensors);
    });
  };
  tensor_source const good{.name = "a", .dims = {4}, .data = bytes_of(four)};
  CHECK(contains(refused({good, good}), "two tensors would be named 'a'"));
  CHECK(contains(refused({{.name = "__metadata__", .dims = {4}, .data = bytes_of(four)}}), "__metadata__"));
  CHECK(contains(refused({{.name = "a", .dims = {5}, .data = bytes_of(four)}}), "16 bytes do not match"));
  CHECK(
      contains(refused({{.name = "a", .dtype = "F31", .dims = {4}, .data = bytes_of(four)}}), "tensor 'a'"));
  CHECK(contains(refused({{.name = "a\xff", .dims = {4}, .data = bytes_of(four)}}), "not UTF-8"));
  CHECK(refused({good}).empty());
}

TEST_CASE("a header that lies is refused before it is used") {
  scratch const dir;
  std::string const eight(8, '\0');
  CHECK(rejection(dir, R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight).empty());
  CHECK(rejection(dir, "{}").empty());
  auto const bad = [&](std::string const& header, std::string const& says,
                       std::string const& data = std::string(8, '\0')) {
    auto const text = rejection(dir, header, data);
    CHECK_MESSAGE(contains(text, says), header << " gave: " << text);
    CHECK(contains(text, dir / "x.safetensors"));
    CHECK(text.find('\n') == std::string::npos);
  };
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,12]}})", "claims bytes [0, 12) of 8");
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "claims bytes [8, 0)");
  bad(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "need 12");
  bad(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
      "more than a file can hold");
  bad(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
      "more than a file can hold");
  bad(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "dtype 'F33'");
  bad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "its tensors end at 4");
  bad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "begins at byte 4");
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      "'b'");
  bad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      "two tensors 'a'");
  bad(R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", "shape twice");
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "field 'x'");
  bad(R"({"a":{"dtype":"F32","shape":[2]}})", "lacks");
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "lacks");
  bad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "more than two");
  bad(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "negative");
  bad(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", "not whole");
  bad(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "list");
  bad(R"({"a":{"dtype":"F32","shape":[{}],"data_offsets":[0,8]}})", "object");
  bad(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "number");
  bad(R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", "list");
  bad(R"({"a":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})", "null");
  bad(R"({"a":{"dtype":true,"shape":[2],"data_offsets":[0,8]}})", "boolean");
  bad(R"({"a":7})", "number");
  bad(R"({"a":"7"})", "string");
  bad(R"({"__metadata__":{"k":1}})", "number", "");
  bad(R"({"__metadata__":{"k":"1","k":"2"}})", "'k' twice", "");
  bad(R"({"__metadata__":{},"__metadata__":{}})", "twice", "");
  bad(R"({"a)", "not JSON at byte", "");
  bad(R"([])", "does not begin", "");
  bad(R"( {})", "does not begin", "");
  bad("{}x", "not JSON at byte", "");
  bad("{\"a\xff\":{}}", "not JSON", "");
  bad("{\"a\\n\":1}", "'a?'", "");
  std::string dims = "1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  bad(R"({"a":{"dtype":"F32","shape":[)" + dims + R"(],"data_offsets":[0,4]}})", "dimensions",
      std::string(4, '\0'));
  bad(R"({"a":)" + std::string(200'000, '['), "list", "");
}

TEST_CASE("a length that lies is refused before memory is taken") {
  scratch const dir;
  auto const with_length = [&](std::uint64_t n, std::string const& rest) {
    std::string length(8, '\0');
    std::memcpy(length.data(), &n, 8);
    spill(dir / "a", length + rest);
    return complaint([&] { safetensors_file file(dir / "a"); });
  };
  CHECK(contains(with_length(3, "{}"), "claims a header of 3 bytes"));
  CHECK(contains(with_length(100'000'001, "{}"), "claims a header"));
  CHECK(contains(with_length(~0ull, "{}"), "claims a header"));
  CHECK(contains(with_length(~0ull - 7, "{}"), "claims a header"));
  CHECK(contains(with_length(0, "{}"), "does not begin"));
  CHECK(with_length(2, "{}").empty());
  spill(dir / "a", "1234567");
  CHECK(contains(complaint([&] { safetensors_file file(dir / "a"); }), "too few"));
}

TEST_CASE("bytes drawn at random do no harm" * doctest::test_suite("long")) {
  scratch const dir;
  std::mt19937 random(1);
  std::string const good =
      R"({"__metadata__":{"a":"b"},"t":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  std::string const alphabet = "{}[]\",:0123456789adehpstyF_ \\u-.\n\xff";
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string header = good;
    for (int edits = 1 + int(random() % 3); edits > 0; --edits) {
      auto const at = random() % header.size();
      char const c = alphabet[random() % alphabet.size()];
      if (random() % 2)
        header[at] = c;
      else
        header.insert(at, 1, c);
    }
    refused += !rejection(dir, header, std::string(8, 'x')).empty();
  }
  CHECK(refused > 1500);
  CHECK(refused < 3000);
}

TEST_CASE("an index stands for all tensors of the files that it names") {
  scratch const dir;
  auto const write = [&](std::string const& name, std::vector<tensor_source> const& all) {
    edl::durable_file out(dir / name);
    write_safetensors(out, all);
    out.commit();
  };
  std::array<float, 2> const a{1, 2}, c{5, 6};
  std::array<float, 1> const b{3};
  write("m-1.safetensors",
        {{.name = "c", .dims = {2}, .data = bytes_of(c)}, {.name = "a", .dims = {2}, .data = bytes_of(a)}});
  write("m-2.safetensors", {{.name = "b", .dims = {1}, .data = bytes_of(b)}});
  std::string const index = dir / "m.safetensors.index.json";
  auto const open = [&](std::string const& map) {
    spill(index, R"({"metadata": {"total_size": 20}, "weight_map": )" + map + "}");
    return safetensors_file(index);
  };
  auto const one = R"({"b": "m-2.safetensors", "a": "m-1.safetensors", "c": "m-1.safetensors"})";
  safetensors_file const file = open(one);
  REQUIRE(file.tensors().size() == 3);
  std::array<float, 2> got{};
  file.read(*file.find("c"), 0, std::as_writable_bytes(std::span(got)));
  CHECK(got == c);
  file.read(*file.find("b"), 0, std::as_writable_bytes(std::span(got).first(1)));
  CHECK(got[0] == 3);
  CHECK(contains(
      complaint([&] { file.read(*file.find("b"), 2, std::as_writable_bytes(std::span(got).first(1))); }),
      "has no bytes [2, 6)"));

  auto const refused = [&](std::string const& map) { return complaint([&] { open(map); }); };
  CHECK(contains(refused(R"({"a": "m-2.safetensors"})"),
                 "has tensor 'a' in m-2.safetensors, which does not have it"));
  CHECK(contains(refused(R"({"a": "m-1.safetensors"})"), "names 1 tensor, but its 1 file has 2"));
  CHECK(
      contains(refused(R"({"a": "../m-1.safetensors"})"), "gives tensor 'a' no .safetensors file beside it"));
  CHECK(contains(refused(R"({"a": 1})"), "beside it, but 1"));
  CHECK(contains(refused(R"({"a": "m-3.safetensors"})"), "m-3.safetensors"));
  CHECK(contains(refused("{}"), "has no 'weight_map'"));
  CHECK(contains(refused("[]"), "has no 'weight_map'"));
  CHECK(contains(refused(R"({"b": "m-2.safetensors", "b": "m-2.safetensors"})"), "twice in one object"));
  spill(index, "[");
  CHECK(contains(complaint([&] { safetensors_file{index}; }), "is not JSON"));
}

}  // namespace safetensors_test
