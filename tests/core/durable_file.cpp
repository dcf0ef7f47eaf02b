// SPDX-License-Identifier: Apache-2.0
#include "edl/core/durable_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire/scratch.hpp"
#include "edl/core/storage_error.hpp"

namespace durable_file_test {

using namespace edl;

TEST_CASE("storage that fails for a while is waited for, unless it is told not to, or fails for ever") {
  logger const log(severity::critical);
  int tries = 0, pauses = 0;
  auto const fails = [&](int times, int code) {
    return [&, times, code] {
      if (++tries <= times) throw storage_error(code, "no");
    };
  };
  auto const rest = [&](auto) { return ++pauses < 3; };
  CHECK(when_storage_allows(fails(2, EIO), rest, log));
  CHECK(tries == 3);
  CHECK(pauses == 2);
  CHECK_FALSE(when_storage_allows(fails(9, ENOSPC), rest, log));
  CHECK(pauses == 3);
  CHECK_THROWS_AS(when_storage_allows(fails(99, ENOENT), rest, log), storage_error);
  CHECK(pauses == 3);
}

TEST_CASE("bytes that were written give way to others, of which the checksum does not hear") {
  scratch const dir;
  edl::durable_file file(dir / "f");
  file.write("head 00000000 tail");
  auto const before = file.crc32();
  file.overwrite(5, "12345678");
  CHECK(file.crc32() == before);
  CHECK(file.size() == 18);
  file.write("!");
  file.commit();
  CHECK(slurp(dir / "f") == "head 12345678 tail!");
}

TEST_CASE("a file exists from commit on, and not before") {
  scratch const dir;
  {
    durable_file file(dir / "a");
    file.write("half");
    CHECK(entries(dir.path()).size() == 1);
    CHECK(is_temporary(entries(dir.path()).front()));
  }
  CHECK(entries(dir.path()).empty());
  durable_file file(dir / "a");
  file.write("123456789");
  CHECK(file.size() == 9);
  CHECK(file.crc32() == 0xCBF43926u);  // the check value of CRC-32
  file.commit();
  CHECK(entries(dir.path()) == std::vector<std::string>{"a"});
  CHECK(slurp(dir / "a") == "123456789");
  CHECK(contains(complaint([&] { file.write("more"); }), "it is closed"));
  CHECK(contains(complaint([&] { file.commit(); }), "it is closed"));
}

TEST_CASE("a file may get its name when all is written") {
  scratch const dir;
  durable_file file(dir / "a");
  file.write("123456789");
  file.rename(dir / "b");
  CHECK(file.path() == dir / "b");
  file.commit();
  CHECK(entries(dir.path()) == std::vector<std::string>{"b"});
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
    return contains(text, dir / "a") && contains(text, "at byte 3000000") && contains(text, "raise ulimit -f")
               ? 0
               : 1;
  });
  CHECK(status == 0);
  CHECK(entries(dir.path()).empty());
}

TEST_CASE("names of temporaries") {
  CHECK(is_temporary(".manifest.json.tmp-0123456789abcdef"));
  CHECK(is_temporary("manifest.json.tmp-0123456789abcdef"));
  CHECK_FALSE(is_temporary("manifest.json"));
  CHECK_FALSE(is_temporary("a.tmp-0123456789abcdeg"));
  CHECK_FALSE(is_temporary("a.tmp-0123"));
}

TEST_CASE("what cannot be written is named") {
  scratch const dir;
  CHECK(complaint([&] { durable_file file(dir / "no/a"); }) ==
        "cannot create " + dir / "no/a" + ": No such file or directory");
  CHECK(contains(complaint([&] { replace_file(dir.path(), "text"); }), dir.path()));
  CHECK(entries(dir.path()).empty());
}

TEST_CASE("a device and a pipe are not replaced") {
  scratch const dir;
  std::filesystem::create_symlink("/dev/full", dir / "full");
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  for (std::string const& path : {dir / "full", dir / "pipe"})
    CHECK_THROWS_WITH_AS(replace_file(path, "text"),
                         ("cannot replace " + path + ": it is not a regular file").c_str(),
                         edl::storage_error);
  CHECK(entries(dir.path()).size() == 2);
  CHECK(std::filesystem::is_fifo(dir / "pipe"));
}

TEST_CASE("two writers of one name do not share a temporary") {
  scratch const dir;
  durable_file one(dir / "a"), two(dir / "a");
  one.write("one");
  two.write("two, and longer");
  two.commit();
  CHECK(slurp(dir / "a") == "two, and longer");
  one.commit();
  CHECK(slurp(dir / "a") == "one");
  CHECK(entries(dir.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("who lists a directory does not see what is incomplete") {
  scratch const dir;
  durable_file const file(dir / "part-00000.csv");
  durable_directory const tree(dir / "train");
  for (std::string const& name : entries(dir.path())) CHECK(name.starts_with('.'));
}

TEST_CASE("a directory appears when it is complete, or never") {
  scratch const dir;
  {
    durable_directory const left(dir / "a");
    spill(left.temporary() + "/f", "text");
  }
  CHECK(entries(dir.path()).empty());
  std::filesystem::create_directory(dir / "a");
  durable_directory tree(dir / "a/");
  spill(tree.temporary() + "/f", "text");
  CHECK(entries(dir / "a").empty());
  tree.commit();
  CHECK(slurp(dir / "a/f") == "text");
  CHECK(contains(complaint([&] { tree.commit(); }), "is already complete"));
  durable_directory other(dir / "a");
  CHECK(contains(complaint([&] { other.commit(); }), "into place"));
}

TEST_CASE("what the dead left is removed, what the living write is not") {
  scratch const dir;
  spill(dir / "mine.txt", "");
  durable_file living(dir / "living");
  durable_directory const tree(dir / "tree");
  pid_t const child = ::fork();
  if (child == 0) {
    // As a process that is killed: no destructor runs.
    auto* const file = new durable_file(dir / "dead");
    file->write("half");
    auto* const directory = new durable_directory(dir / "dead-tree");
    spill(directory->temporary() + "/f", "half");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  spill(dir / "old.tmp-0123456789abcdef", "as older versions of this program named them");
  CHECK(entries(dir.path()).size() == 6);
  CHECK(remove_dead_temporaries(dir.path()) == 3);
  CHECK(entries(dir.path()).size() == 3);
  CHECK(std::filesystem::exists(tree.temporary()));
  living.write("whole");
  living.commit();
  CHECK(slurp(dir / "living") == "whole");
  CHECK(remove_dead_temporaries(dir.path()) == 0);
  CHECK(remove_dead_temporaries(dir / "nowhere") == 0);
}

}  // namespace durable_file_test
