#include "edl/data/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "data/support.hpp"

using edl::data::detail::input_file, edl::data::detail::output_file;
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

TEST_CASE("a written file appears when it is complete, or never") {
  support::scratch const dir;
  {
    output_file file{dir / "f"};
    file.write("abc");
    CHECK(!std::filesystem::exists(dir / "f"));
    file.write("def");
    file.close();
  }
  CHECK(support::read(dir / "f") == "abcdef");
  { output_file{dir / "g"}.write("abc"); }
  CHECK(!std::filesystem::exists(dir / "g"));
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  CHECK(has(failure([&] { output_file{dir / "none/f"}; }), "cannot be written"));
}

TEST_CASE("a full disk is an error") {
  if (!std::filesystem::exists("/dev/full")) return;
  support::scratch const dir;
  // The file that will be written to, under the name that it has until it is complete.
  auto const partial = dir / (".f." + std::to_string(::getpid()) + ".partial");
  std::filesystem::create_symlink("/dev/full", partial);
  output_file file{dir / "f"};
  CHECK(has(failure([&] { file.write("abc"); }), "No space left"));
}
