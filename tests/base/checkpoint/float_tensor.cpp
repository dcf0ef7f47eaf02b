// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/float_tensor.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "base/wire/scratch.hpp"
#include "edl/core/bfloat16.hpp"
#include "edl/core/durable_file.hpp"

namespace float_tensor_test {

using namespace edl::checkpoint;

namespace {

template <class T>
void write(std::string const& path, std::string const& dtype, std::vector<std::uint64_t> const& dims,
           std::vector<T> const& elements) {
  edl::durable_file file(path);
  tensor_source const only{
      .name = "w", .dtype = dtype, .dims = dims, .data = std::as_bytes(std::span(elements))};
  write_safetensors(file, {&only, 1});
  file.commit();
}

std::vector<float> read(std::string const& path) {
  safetensors_file const file(path);
  return read_floats(file, *file.find("w"));
}

}  // namespace

TEST_CASE("numbers of all three types are read as they are") {
  scratch const dir;
  write<float>(dir / "f32", "F32", {3}, {1.5f, -2, 0.1f});
  CHECK(read(dir / "f32") == std::vector<float>{1.5f, -2, 0.1f});
  write<std::uint16_t>(dir / "f16", "F16", {2, 2}, {0x3c00, 0xc000, 0x0001, 0x7bff});
  CHECK(read(dir / "f16") == std::vector<float>{1, -2, 0x1p-24f, 65504});
  write<std::uint16_t>(dir / "bf16", "BF16", {2, 2}, {0x3f80, 0xc000, 0x0001, 0x7f7f});
  CHECK(read(dir / "bf16") == std::vector<float>{1, -2, 0x1p-133f, 0x1.fep127f});
  write<std::uint16_t>(dir / "empty", "F16", {0, 7}, {});
  CHECK(read(dir / "empty").empty());
}

TEST_CASE("what is no number, or infinite, stays so") {
  scratch const dir;
  for (auto const& [dtype, one] :
       {std::pair{"F16", std::uint16_t(0x7c00)}, {"BF16", std::uint16_t(0x7f80)}}) {
    write<std::uint16_t>(dir / "m", dtype, {3}, {one, std::uint16_t(one | 0x8000), std::uint16_t(one | 1)});
    auto const values = read(dir / "m");
    CHECK(values[0] == std::numeric_limits<float>::infinity());
    CHECK(values[1] == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(values[2]));
  }
}

TEST_CASE("a tensor of several pieces is read whole") {
  scratch const dir;
  std::vector<std::uint16_t> elements(3 * 4096 + 5);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = edl::to_bfloat16(float(i % 251));
  write(dir / "m", "BF16", {elements.size()}, elements);
  auto const values = read(dir / "m");
  REQUIRE(values.size() == elements.size());
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] == float(i % 251) ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("a type that is not a float32's is refused with the tensor and the way out") {
  scratch const dir;
  write<double>(dir / "m", "F64", {2}, {1, 2});
  CHECK(complaint([&] { (void)read(dir / "m"); }) ==
        "tensor 'w' of " + dir / "m" +
            " is F64; numbers are read of F32, F16 and BF16: save it as one of them");
}

TEST_CASE("a file that was cut is refused, and so is one that shrinks after its header was read") {
  scratch const dir;
  std::vector<std::uint16_t> const elements(9000, 0x3c00);
  write(dir / "m", "F16", {9000}, elements);
  safetensors_file const file(dir / "m");
  std::filesystem::resize_file(dir / "m", file.size() - 1);
  CHECK(contains(complaint([&] { safetensors_file{dir / "m"}; }), "tensor 'w' of " + dir / "m" + " claims"));
  CHECK(contains(complaint([&] { (void)read_floats(file, *file.find("w")); }), dir / "m"));
}

TEST_CASE("a shape that does not fit half-precision bytes is refused by name") {
  scratch const dir;
  auto const refused = [&](std::string const& header, std::string const& data) {
    std::string length(8, '\0');
    length[0] = char(header.size());
    spill(dir / "m", length + header + data);
    return complaint([&] { (void)read(dir / "m"); });
  };
  // As many bytes as float32 would need, and half an element.
  CHECK(contains(refused(R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x')),
                 "has 8 bytes, but its shape and F16 need 4"));
  CHECK(contains(refused(R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,3]}})", std::string(3, 'x')),
                 "has 3 bytes, but its shape and BF16 need 4"));
}

}  // namespace float_tensor_test
