// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "compute/data/support.hpp"

namespace file_test {

using edl::data::detail::input_file;
using support::failure, support::has;

TEST_CASE("a file is read by offset, and that it changed is noticed") {
  support::scratch const dir;
  auto const path = support::write(dir / "f", "0123456789");
  input_file file{path};
  char bytes[4];
  file.read(3, bytes, 4);
  CHECK(std::string_view(bytes, 4) == "3456");
  CHECK(failure([&] { file.check_unchanged(); }).empty());
  input_file moved = std::move(file);
  moved.read(0, bytes, 4);
  CHECK(std::string_view(bytes, 4) == "0123");
  CHECK(has(failure([&] { moved.read(8, bytes, 4); }), "ends at byte 10"));
  std::filesystem::resize_file(path, 5);
  CHECK(has(failure([&] { moved.read(4, bytes, 4); }), path + ": ends at byte 5 though it had 10"));
  CHECK(has(failure([&] { moved.check_unchanged(); }), "has 5 bytes but had 10"));
  support::write(path, "9876543210");
  ::timespec const times[2]{{1, 0}, {1, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  CHECK(has(failure([&] { moved.check_unchanged(); }), "was changed"));
}

TEST_CASE("a digest is of all of a file, or of blocks all over a long one") {
  support::scratch const dir;
  auto const digest = [&] { return edl::data::detail::digest_of(input_file{dir / "f"}); };
  std::string text(200'000, 'x');
  support::write_anew(dir / "f", text);
  auto const plain = digest();
  CHECK(digest() == plain);
  for (std::size_t const at : {std::size_t{0}, std::size_t{65'536}, std::size_t{123'456}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'y';
    support::write_anew(dir / "f", changed);
    CHECK(digest() != plain);
  }
  support::write_anew(dir / "f", text + 'x');
  CHECK(digest() != plain);
  // 100 MiB without blocks on the disk.
  support::write_anew(dir / "f", "");
  std::filesystem::resize_file(dir / "f", 100u << 20);
  auto const long_one = digest();
  for (std::uint64_t const at : {0u, 50u << 20, (100u << 20) - 65'536}) {
    std::fstream file(dir / "f", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::streamoff(at));
    file << std::string(131'072, 'z').substr(0, (100u << 20) - at);
    file.close();
    auto const now = digest();
    CHECK(now != long_one);
    std::filesystem::remove(dir / "f");
    support::write(dir / "f", "");
    std::filesystem::resize_file(dir / "f", 100u << 20);
  }
}

TEST_CASE("what is no readable file says so and does not hang") {
  support::scratch const dir;
  CHECK(has(failure([&] { input_file{dir / "none"}; }), "No such file"));
  CHECK(has(failure([&] { input_file{dir.path()}; }), "not a regular file"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(has(failure([&] { input_file{dir / "pipe"}; }), "not a regular file"));
  support::write(dir / "big", "0123456789");
  CHECK(has(failure([&] { edl::data::detail::read_all(dir / "big", 9); }), "at most 9"));
  CHECK(edl::data::detail::read_all(dir / "big", 10) == "0123456789");
}

}  // namespace file_test
