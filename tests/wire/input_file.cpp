#include "edl/wire/durable_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>

#include "wire/scratch.hpp"

using namespace edl::wire;

TEST_CASE("a file exists from commit on, and not before") {
  scratch const dir;
  {
    durable_file file(dir / "a");
    file.write("half");
    CHECK(entries(dir.path).size() == 1);
    CHECK(is_temporary(entries(dir.path).front()));
  }
  CHECK(entries(dir.path).empty());
  durable_file file(dir / "a");
  file.write("123456789");
  CHECK(file.size() == 9);
  CHECK(file.crc32() == 0xCBF43926u);  // the check value of CRC-32
  file.commit();
  CHECK(entries(dir.path) == std::vector<std::string>{"a"});
  CHECK(slurp(dir / "a") == "123456789");
  CHECK(contains(complaint([&] { file.write("more"); }), "it is closed"));
  CHECK(contains(complaint([&] { file.commit(); }), "it is closed"));
}

TEST_CASE("the old file stays whole until the new one is") {
  scratch const dir;
  spill(dir / "a", "old");
  durable_file file(dir / "a");
  file.write("new");
  CHECK(slurp(dir / "a") == "old");
  file.commit();
  CHECK(slurp(dir / "a") == "new");
}

TEST_CASE("a full disk is one error and leaves nothing") {
  scratch const dir;
  int const status = with_limited_files(3'000'000, false, [&] {
    std::string const megabyte(1 << 20, 'x');
    auto const text = complaint([&] {
      durable_file file(dir / "a");
      for (int i = 0; i < 5; ++i) file.write(megabyte);
      file.commit();
    });
    return contains(text, dir / "a") && contains(text, "at byte 3000000") && contains(text, "make room") ? 0
                                                                                                         : 1;
  });
  CHECK(status == 0);
  CHECK(entries(dir.path).empty());
}

TEST_CASE("what cannot be opened is named") {
  scratch const dir;
  CHECK(contains(complaint([&] { durable_file file(dir / "no/a"); }), dir / "no/a"));
  CHECK(contains(complaint([&] { input_file file(dir / "none"); }), dir / "none"));
  CHECK(contains(complaint([&] { input_file file(dir.path); }), "no regular file"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK(contains(complaint([&] { input_file file(dir / "pipe"); }), "no regular file"));
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

TEST_CASE("names of temporaries") {
  CHECK(is_temporary("manifest.json.tmp-0123456789abcdef"));
  CHECK_FALSE(is_temporary("manifest.json"));
  CHECK_FALSE(is_temporary("a.tmp-0123456789abcdeg"));
  CHECK_FALSE(is_temporary("a.tmp-0123"));
}
