// SPDX-License-Identifier: Apache-2.0
// What the simulated disks keep, refuse and lose.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "world/test/harness.hpp"

namespace {

using namespace harness;
namespace fs = std::filesystem;

std::string slurp(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(std::string const& path, std::string const& text, bool force, int more = O_TRUNC) {
  int const fd = ::open(path.c_str(), O_WRONLY | O_CREAT | more, 0644);
  static_cast<void>(!::write(fd, text.data(), text.size()));
  if (force) ::fsync(fd);
  ::close(fd);
}

void force_directory(char const* path) {
  int const fd = ::open(path, O_RDONLY | O_DIRECTORY);
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

TEST_CASE("files and directories are as the standard library expects them") {
  auto const o = history([](notes note) {
    fs::create_directories("/a/b/c");
    std::ofstream("/a/b/one") << "first\n";
    std::ofstream("/a/b/one", std::ios::app) << "second\n";
    note("{} {}", slurp("/a/b/one").size(), fs::file_size("/a/b/one"));
    fs::rename("/a/b/one", "/a/two");
    fs::create_symlink("/a/two", "/a/link");
    note("{} {} {}", fs::exists("/a/b/one"), slurp("/a/link").size(), fs::is_symlink("/a/link"));
    for (auto const& entry : fs::directory_iterator("/a")) note("{}", entry.path().filename().string());
    auto const removed = fs::remove_all("/a");
    note("{} {}", removed, fs::exists("/a"));
    std::ifstream none("/nowhere");
    note("{}", none.is_open());
    fs::current_path("/tmp");
    std::ofstream("here") << "x";
    note("{}", fs::exists("/tmp/here"));
    fs::copy_file("/tmp/here", "/tmp/there");
    note("{}", slurp("/tmp/there"));
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) ==
        text({"13 13", "false 13 true", "b", "link", "two", "5 false", "false", "true", "x"}));
}

TEST_CASE("hosts have their own disks, and share those that are mounted") {
  auto const o = history([](notes note) {
    world::mount_everywhere("/shared", "storage");
    world::wait(world::start({.name = "other", .main = [](int, char**) {
                                put("/own", "o", true);
                                put("/shared/all", "s", true);
                                return 0;
                              }}));
    note("{} {}", fs::exists("/own"), slurp("/shared/all"));
    note("{}", *world::read_file("other", "/own"));
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"false s", "o"}));
}

TEST_CASE("a disk that is slow, full, broken or not to be written says so") {
  auto const o = history([](notes note) {
    auto const before = world::now();
    world::set_disk("world", {.fsync = 10s});
    put("/tmp/slow", "x", true);
    note("{}", world::now() - before > 4s);
    world::set_disk("world", {.capacity = world::disk_used("world") + 8192});
    int const fd = ::open("/tmp/full", O_WRONLY | O_CREAT, 0644);
    std::string const block(6000, 'x');
    for (int i = 0; i < 3; ++i) note("{}", result(::write(fd, block.data(), block.size())));
    world::set_disk("world", {.io_error = 1});
    note("{}", result(::fsync(fd)));
    note("{}", result(::rename("/tmp/full", "/tmp/moved")));
    note("{}", result(::unlink("/tmp/full")));
    note("{}", result(::open("/tmp/full", O_RDONLY)));
    world::set_disk("world", {.read_only = true});
    note("{}", result(::open("/tmp/more", O_WRONLY | O_CREAT, 0644)));
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"true", "6000", "2192", "ENOSPC", "EIO", "EIO", "EIO", "EIO", "EROFS"}));
}

TEST_CASE("locks of files end with their holder") {
  auto const o = history([](notes note) {
    world::mount_everywhere("/shared", "storage");
    put("/shared/lock", "", true);
    auto const holder = world::start({.name = "holder", .main = [](int, char**) {
                                        int const fd = ::open("/shared/lock", O_RDWR);
                                        ::flock(fd, LOCK_EX);
                                        std::this_thread::sleep_for(100h);
                                        return 0;
                                      }});
    std::this_thread::sleep_for(1ms);
    int const fd = ::open("/shared/lock", O_RDWR);
    note("{}", result(::flock(fd, LOCK_EX | LOCK_NB)));
    world::at(world::now() + 5s, [holder] { world::kill(holder, 9); });
    note("{}", result(::flock(fd, LOCK_EX)));
    note("{}", world::now() / 1s);
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"EAGAIN", "0", "5"}));
}

TEST_CASE("a blind storage shows nobody the locks of other hosts") {
  auto const o = history([](notes note) {
    world::mount_everywhere("/shared", "storage");
    put("/shared/lock", "", true);
    static auto const seize = [] {
      struct flock how{};
      how.l_type = F_WRLCK;
      how.l_len = 1;
      return result(::fcntl(::open("/shared/lock", O_RDWR), F_OFD_SETLK, &how));
    };
    auto const elsewhere = [] {
      world::start({.name = "other", .main = [](int, char**) {
                      put("/shared/said", seize(), true);
                      return 0;
                    }});
      std::this_thread::sleep_for(1s);
      return slurp("/shared/said");
    };
    note("{}", seize());
    note("{}", elsewhere());
    world::set_disk("storage", {.blind = true});
    note("{}", seize());
    note("{}", elsewhere());
  });
  CHECK(o.failure == "");
  CHECK(text(o.said) == text({"0", "EAGAIN", "EAGAIN", "0"}));
}

TEST_CASE("a loss of power leaves what was forced, and any part of the rest") {
  std::set<std::string> journals, names;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    auto const o = history(
        [](notes note) {
          fs::create_directory("/d");
          force_directory("/");
          put("/d/forced", "forced", true);
          put("/d/journal", "first,", true);
          force_directory("/d");
          put("/d/journal", "second,", false, O_APPEND);
          put("/d/new", "new", true);
          put("/d/lies", "", true);
          world::lose_unforced("world");
          note("{}", slurp("/d/forced"));
          note("{}", slurp("/d/journal"));
          note("{}", fs::exists("/d/new") ? slurp("/d/new") : "none");
        },
        seed);
    REQUIRE(o.failure.empty());
    REQUIRE(o.said.size() == 3);
    CHECK(o.said[0] == "forced");
    CHECK(o.said[1].starts_with("first,"));
    CHECK((o.said[2] == "new" || o.said[2] == "none"));
    journals.insert(o.said[1]);
    names.insert(o.said[2]);
  }
  CHECK(journals.size() > 3);
  CHECK(names.size() == 2);
}

TEST_CASE("a disk that lies loses what it said it has") {
  std::set<std::string> all;
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    all.insert(history(
                   [](notes note) {
                     world::set_disk("world", {.lies = true});
                     put("/tmp/x", "x", true);
                     force_directory("/tmp");
                     world::lose_unforced("world");
                     note("{}", fs::exists("/tmp/x") ? slurp("/tmp/x") : "none");
                   },
                   seed)
                   .said.at(0));
  CHECK(all.contains("none"));
}
