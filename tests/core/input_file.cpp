// SPDX-License-Identifier: Apache-2.0
#include "edl/core/input_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>

#include "base/wire/scratch.hpp"

namespace input_file_test {

using namespace edl;

TEST_CASE("what cannot be opened is named") {
  scratch const dir;
  CHECK(contains(complaint([&] { input_file file(dir / "none"); }), dir / "none"));
  CHECK(contains(complaint([&] { input_file file(dir.path()); }), "not a regular file"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(contains(complaint([&] { input_file file(dir / "pipe"); }), "not a regular file"));
}

TEST_CASE("a file is read at any place, and never beyond its end") {
  scratch const dir;
  spill(dir / "a", "123456789");
  input_file const file(dir / "a");
  CHECK(file.size() == 9);
  CHECK(file.crc32() == 0xCBF43926u);
  std::array<char, 3> three{};
  file.read(6, std::as_writable_bytes(std::span(three)));
  CHECK(std::string(three.data(), 3) == "789");
  CHECK(
      contains(complaint([&] { file.read(7, std::as_writable_bytes(std::span(three))); }), "ends at byte 9"));
  CHECK(contains(complaint([&] { file.read(~0ull, std::as_writable_bytes(std::span(three))); }), dir / "a"));
}

}  // namespace input_file_test
